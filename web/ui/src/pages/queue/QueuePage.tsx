import { Page } from "../../components/Page";
import { addresses } from "../../router/addresses";
import { navigate } from "../../router/location";
import { FilterBar } from "./FilterBar";
import { QueueTable } from "./QueueTable";
import { useQueue } from "./useQueue";
import { useQueueFilter } from "./useQueueFilter";

/** The queue: live jobs and ended ones, filtered by the address. */
export default function QueuePage() {
  const filter = useQueueFilter();
  const queue = useQueue(filter);
  return (
    <Page title="Queue" heading={filter.view === "ended" ? "Ended jobs" : "Queue"} aside={<FilterBar filter={filter} />}>
      <QueueTable queue={queue} filter={filter} onOpen={(row) => navigate(addresses.job(row.name))} />
    </Page>
  );
}
