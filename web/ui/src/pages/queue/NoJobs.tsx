import { Command } from "../../components/Command";
import { Empty } from "../../components/Empty";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import type { Filter } from "./useQueueFilter";

const none: Record<Filter["view"], string> = {
  live: "No job runs or waits.", running: "No job runs.", waiting: "No job waits.", ended: "No job has ended yet.",
};

/** Says that there are no jobs, and what to do. */
export function NoJobs({ filter }: { filter: Filter }) {
  if (Object.keys(filter.values).length > 0) {
    return (
      <Empty>
        <p>No job fits this filter.</p>
        <p><Link to={addresses.queue}>Show all live jobs</Link></p>
      </Empty>
    );
  }
  return (
    <Empty>
      <p>{none[filter.view]}</p>
      <p><Command text="cox submit job.sbatch" /></p>
    </Empty>
  );
}
