import { number } from "../../format/number";
import { Link } from "../../router/Link";

interface CountListProps {
  counts: Record<string, number>;
  addressOf: (name: string) => string;
  none: string;
}

/** Names with how many there are of each, the most first. */
export function CountList({ counts, addressOf, none }: CountListProps) {
  const entries = Object.entries(counts).filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
  if (entries.length === 0) return <p className="faint">{none}</p>;
  return (
    <ul className="count-list">
      {entries.map(([name, count]) => (
        <li key={name}><Link to={addressOf(name)}>{name}</Link> <span className="number">{number(count)}</span></li>
      ))}
    </ul>
  );
}
