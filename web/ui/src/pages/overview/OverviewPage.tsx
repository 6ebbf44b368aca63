import { usePools, useServer } from "../../api/queries";
import { Async } from "../../components/Async";
import { Card } from "../../components/Card";
import { Page } from "../../components/Page";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { JobList } from "./JobList";
import { PoolUse } from "./PoolUse";
import { RecentChanges } from "./RecentChanges";
import "./OverviewPage.css";

/** What a reader looks at first: how full it is, their own jobs, what failed, what changes. */
export default function OverviewPage() {
  const server = useServer();
  const pools = usePools();
  const you = server.data?.you.name;
  return (
    <Page title="Overview">
      <Async query={pools}>{({ pools: list }) => <PoolUse pools={list ?? []} />}</Async>
      <div className="overview">
        <div className="overview-column">
          {you !== undefined && (
            <>
              <Card title="My jobs" aside={<Link to={addresses.queueOf({ user: you })}>all</Link>}>
                <JobList route="/v1/jobs" filter={{ users: [you] }} none="You have no job that runs or waits." />
              </Card>
              <Card title="My jobs that failed" aside={<Link to={addresses.queueOf({ view: "ended", user: you })}>all that ended</Link>}>
                <JobList route="/v1/history" filter={{ users: [you], states: ["FAILED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "LOST", "DEADLINE", "BOOT_FAIL"] }} none="None of your jobs failed." />
              </Card>
            </>
          )}
        </div>
        <div className="overview-column">
          <Card title="What changed" aside="as it happens"><RecentChanges /></Card>
        </div>
      </div>
    </Page>
  );
}
