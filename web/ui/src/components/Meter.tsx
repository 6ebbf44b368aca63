import "./Meter.css";

interface MeterProps {
  used: number;
  all: number;
  label: string;
}

/** How much of something is used. */
export function Meter({ used, all, label }: MeterProps) {
  const width = all > 0 ? Math.min(100, (100 * used) / all) : 0;
  return (
    <svg className="meter" role="img" aria-label={label} viewBox="0 0 100 6" preserveAspectRatio="none">
      <rect className="meter-all" width="100" height="6" />
      <rect className="meter-used" width={width} height="6" />
    </svg>
  );
}
