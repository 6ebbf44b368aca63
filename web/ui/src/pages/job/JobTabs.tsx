import { Tab, TabList, TabPanel, Tabs } from "react-aria-components";
import type { Job } from "../../api/types";
import { setQuery, useQuery } from "../../router/location";
import { JobOverview } from "./JobOverview";
import { JobSource } from "./JobSource";
import { JobUsage } from "./JobUsage";
import { LogTab } from "./log/LogTab";
import "./JobTabs.css";

const tabs = [
  ["overview", "Overview"],
  ["log", "Log"],
  ["usage", "Usage"],
  ["source", "Source"],
] as const;

/** The parts of a job's page. The address says which is shown. */
export function JobTabs({ job }: { job: Job }) {
  const chosen = useQuery().get("tab") ?? "overview";
  const tab = tabs.some(([id]) => id === chosen) ? chosen : "overview";
  return (
    <Tabs className="tabs" selectedKey={tab} onSelectionChange={(key) => setQuery({ tab: key === "overview" ? "" : String(key) })}>
      <TabList className="tab-list" aria-label="Parts of the job">
        {tabs.map(([id, label]) => <Tab className="tab" id={id} key={id}>{label}</Tab>)}
      </TabList>
      <TabPanel className="tab-panel" id="overview"><JobOverview job={job} /></TabPanel>
      <TabPanel className="tab-panel" id="log"><LogTab job={job} /></TabPanel>
      <TabPanel className="tab-panel" id="usage"><JobUsage job={job} /></TabPanel>
      <TabPanel className="tab-panel" id="source"><JobSource job={job} /></TabPanel>
    </Tabs>
  );
}
