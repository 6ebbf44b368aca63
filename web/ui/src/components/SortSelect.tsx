import { setQuery } from "../router/location";
import "./SortSelect.css";

interface SortSelectProps {
  columns: readonly { text: string; by?: string }[]; // by: the column's name in the API
  sort: string; // what the list is sorted by now
}

/** What a list is sorted by, on small screens, where it has no heads of columns or not all of them. */
export function SortSelect({ columns, sort }: SortSelectProps) {
  const options = columns.flatMap(({ text, by }) => (by === undefined ? [] : [[by, `${text} ↑`], [`-${by}`, `${text} ↓`]] as const));
  return (
    <label className="sort-select">
      Sort by{" "}
      <select value={sort} onChange={(event) => setQuery({ sort: event.target.value })}>
        {options.every(([value]) => value !== sort) && <option value={sort}>{sort}</option>}
        {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select>
    </label>
  );
}
