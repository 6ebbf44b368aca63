import { useQueryClient } from "@tanstack/react-query";
import { useOverview, useServer } from "../../api/queries";
import type { Overview } from "../../api/types";
import { Async } from "../../components/Async";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { useChanges } from "../../stream/useChanges";
import { CountList } from "./CountList";
import { JobList } from "./JobList";
import { PoolUses } from "./PoolUses";
import { RecentChanges } from "./RecentChanges";
import "./OverviewPage.css";

/** What a reader looks at first: how full it is, what waits and why, their own jobs, what changed. */
export default function OverviewPage() {
  const overview = useOverview();
  const client = useQueryClient();
  useChanges([], () => void client.invalidateQueries({ queryKey: ["overview"] }), { later: 4000 });
  return (
    <Page title="Overview">
      <Async query={overview}>{(data) => <OverviewCards overview={data} />}</Async>
    </Page>
  );
}

const failed = ["FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "LOST", "DEADLINE", "BOOT_FAIL"];

function OverviewCards({ overview }: { overview: Overview }) {
  const you = useServer().data?.you.name;
  return (
    <>
      <PoolUses uses={overview.use ?? []} />
      <div className="overview">
        <div className="overview-column">
          <Card title="Jobs">
            <CountList counts={overview.jobs} addressOf={(state) => addresses.queueOf(state === "PENDING" || state === "RUNNING" || state === "SUSPENDED" ? { state } : { view: "ended", state })} none="no job" />
          </Card>
          <Card title="Why jobs wait"><CountList counts={overview.waiting} addressOf={(reason) => addresses.queueOf({ view: "waiting", reason })} none="no job waits" /></Card>
          <Card title="Nodes"><CountList counts={overview.nodes} addressOf={() => addresses.room} none="no node" /></Card>
        </div>
        <div className="overview-column overview-wide">
          {you !== undefined && (
            <>
              <Card title="My jobs" aside={<Link to={addresses.queueOf({ user: you })}>all</Link>}>
                <JobList route="/v1/jobs" filter={{ users: [you] }} none="You have no job that runs or waits." />
              </Card>
              <Card title="My jobs that failed" aside={<Link to={addresses.queueOf({ view: "ended", user: you })}>all that ended</Link>}>
                <JobList route="/v1/history" filter={{ users: [you], states: failed }} none="None of your jobs failed." />
              </Card>
            </>
          )}
        </div>
        <div className="overview-column overview-wide">
          <Card title="What changed"><RecentChanges events={overview.recent ?? []} /></Card>
        </div>
      </div>
    </>
  );
}
