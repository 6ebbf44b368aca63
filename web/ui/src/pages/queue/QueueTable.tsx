import type { QueueRow } from "../../api/columns";
import { Command } from "../../components/Command";
import { Empty } from "../../components/Empty";
import { ProblemView } from "../../components/Problem";
import { useMedia } from "../../components/useMedia";
import { useNow } from "../../components/useNow";
import { VirtualList } from "../../components/VirtualList";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { QueueRowCells } from "./QueueRowCells";
import { commandOf, type Filter } from "./useQueueFilter";
import type { Queue } from "./useQueue";
import "./QueueTable.css";

interface QueueTableProps {
  queue: Queue;
  filter: Filter;
  onOpen: (row: QueueRow) => void;
}

const headers: [className: string, text: string][] = [
  ["queue-state", "State"], ["queue-job", "Job"], ["queue-user", "User"], ["queue-where", "Pool"], ["queue-nodes", "Nodes"], ["queue-gpus", "GPUs"],
  ["queue-time", "Time"], ["queue-limit", "Limit"], ["queue-why", "Nodes, or why it waits"],
];

/** The rows of the queue. */
export function QueueTable({ queue, filter, onOpen }: QueueTableProps) {
  const narrow = useMedia("(max-width: 900px)");
  const now = useNow(1);
  if (queue.rows.length === 0) {
    if (queue.error) return <ProblemView error={queue.error} />;
    if (queue.loading) return null;
    return <NoJobs filter={filter} />;
  }
  return (
    <>
      {queue.error ? <ProblemView error={queue.error} /> : null}
      <VirtualList
        label="Jobs"
        className="queue"
        items={queue.rows}
        keyOf={(row) => row.name}
        rowHeight={narrow ? 70 : 36}
        header={
          <div className="queue-row queue-header" role="row">
            {headers.map(([className, text]) => <span key={className} role="columnheader" className={className}>{text}</span>)}
          </div>
        }
        row={(row) => <QueueRowCells row={row} now={now} />}
        onOpen={onOpen}
        onEnd={queue.more}
      />
      <p className="queue-foot">
        <span className="faint">{queue.hasMore ? `the first ${queue.rows.length}; more as you scroll` : `${queue.rows.length} ${queue.rows.length === 1 ? "row" : "rows"}`}</span>
        <Command text={commandOf(filter)} />
      </p>
    </>
  );
}

function NoJobs({ filter }: { filter: Filter }) {
  const filtered = Object.keys(filter.values).length > 0;
  return (
    <Empty>
      <p>{filtered ? "No job fits this filter." : filter.view === "ended" ? "No job has ended yet." : filter.view === "waiting" ? "No job waits." : "No job runs or waits."}</p>
      {filtered ? <p><Link to={addresses.queue}>Show all live jobs</Link></p> : <p><Command text="cox submit job.sbatch" /></p>}
    </Empty>
  );
}
