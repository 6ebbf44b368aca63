import { Link } from "../router/Link";
import { withQuery } from "../router/location";

interface SortHeaderProps {
  text: string;
  by?: string; // the column's name in the API; left out: it cannot be sorted by
  sort: string; // what the list is sorted by now
  first?: "up" | "down"; // the order of the first click
  className?: string;
}

/** The head of a column. A click sorts by it, the next one the other way round. */
export function SortHeader({ text, by, sort, first = "up", className }: SortHeaderProps) {
  if (by === undefined) return <span role="columnheader" className={className}>{text}</span>;
  const up = sort === by;
  const down = sort === `-${by}`;
  const next = up ? `-${by}` : down ? by : first === "up" ? by : `-${by}`;
  return (
    <span role="columnheader" className={className} aria-sort={up ? "ascending" : down ? "descending" : "none"}>
      <Link to={withQuery({ sort: next })} className="sort-link">
        {text}
        {up && <span aria-hidden="true"> ↑</span>}
        {down && <span aria-hidden="true"> ↓</span>}
      </Link>
    </span>
  );
}
