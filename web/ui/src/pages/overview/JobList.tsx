import { useQuery, useQueryClient } from "@tanstack/react-query";
import { fetchQueue, type QueueFilter } from "../../api/columns";
import { Async } from "../../components/Async";
import { Badge } from "../../components/Badge";
import { When } from "../../components/When";
import { useNow } from "../../components/useNow";
import { duration } from "../../format/time";
import { jobTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { useChanges } from "../../stream/useChanges";

interface JobListProps {
  route: "/v1/jobs" | "/v1/history";
  filter: QueueFilter;
  none: string;
}

/** A few jobs. */
export function JobList({ route, filter, none }: JobListProps) {
  const key = ["jobs", route, filter];
  const client = useQueryClient();
  const now = useNow(1);
  const query = useQuery({ queryKey: key, queryFn: ({ signal }) => fetchQueue(route, filter, { limit: 8, signal }) });
  useChanges(query.data?.rows.map((row) => row.name) ?? [], () => void client.invalidateQueries({ queryKey: key }), { later: 4000 });
  return (
    <Async query={query}>
      {({ rows }) =>
        rows.length === 0 ? <p className="faint">{none}</p> : (
          <ul className="overview-list">
            {rows.map((row) => (
              <li key={row.name}>
                <Badge tone={jobTone(row.state)}>{row.flags.includes("HELD") ? "HELD" : row.state}</Badge>
                <span title={row.reasonText}><Link to={addresses.job(row.name.replace(/_\[.*$/, ""))}>{row.name}</Link> {row.jobName} <span className="faint">{row.reasonText}</span></span>
                <span className="faint">{row.ended > 0 ? <When at={row.ended} /> : duration(now - (row.started || row.submitted))}</span>
              </li>
            ))}
          </ul>
        )
      }
    </Async>
  );
}
