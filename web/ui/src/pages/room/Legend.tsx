import { colours, type Palette } from "./paint";
import "./Legend.css";

const most = 12;

/** What the colours say. */
export function Legend({ palette }: { palette: Palette }) {
  const names = palette.legend();
  return (
    <ul className="legend" aria-label="Colours">
      {palette.paint === "state" && <Entry colour={colours.used} text="used" />}
      {palette.paint === "use" && <li><span className="legend-scale" aria-hidden="true" /> idle to full</li>}
      {names.slice(0, most).map(([name, colour]) => <Entry key={name} colour={colour} text={name} />)}
      {names.length > most && <li>{names.length - most} more</li>}
      <Entry colour={colours.foreign} text="used by others" />
      <Entry colour={colours.fenced} text="down, or fenced by a check" />
      <Entry colour={colours.draining} text="draining, or on its way" />
    </ul>
  );
}

function Entry({ colour, text }: { colour: string; text: string }) {
  return <li><span className="legend-box" style={{ background: colour }} aria-hidden="true" /> {text}</li>;
}
