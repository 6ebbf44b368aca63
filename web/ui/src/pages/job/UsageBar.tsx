import { Card } from "../../components/Card";
import { Meter } from "../../components/Meter";
import { percent } from "../../format/number";

interface UsageBarProps {
  title: string;
  part: number;
  whole: number;
  text: string;
}

/** How much of one thing was used. */
export function UsageBar({ title, part, whole, text }: UsageBarProps) {
  const share = percent(part, whole);
  return (
    <Card title={title} aside={whole > 0 ? share : undefined}>
      {whole > 0 && <Meter used={part} all={whole} label={`${title}: ${share}`} />}
      <p className="card-text">{text}</p>
    </Card>
  );
}
