import { Page } from "../../components/Page";
import { FilterBar } from "./FilterBar";
import { QueueTable } from "./QueueTable";
import { useHistory } from "./useHistory";
import { useQueue } from "./useQueue";
import { useQueueFilter, type Filter } from "./useQueueFilter";

/** The queue: live jobs and ended ones, filtered and sorted by the address. */
export default function QueuePage() {
  const filter = useQueueFilter();
  return (
    <Page title="Queue" heading={filter.view === "ended" ? "Ended jobs" : "Queue"} aside={<FilterBar filter={filter} />}>
      {filter.view === "ended" ? <EndedJobs filter={filter} /> : <LiveJobs filter={filter} />}
    </Page>
  );
}

function LiveJobs({ filter }: { filter: Filter }) {
  return <QueueTable queue={useQueue(filter)} filter={filter} />;
}

function EndedJobs({ filter }: { filter: Filter }) {
  const history = useHistory(filter);
  return <QueueTable queue={history} filter={filter} hasMore={history.hasMore} />;
}
