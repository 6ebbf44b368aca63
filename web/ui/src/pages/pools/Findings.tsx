import type { PoolDone } from "../../api/types";
import { Badge } from "../../components/Badge";
import { Command } from "../../components/Command";
import type { Tone } from "../../format/tone";

const tones: Record<string, Tone> = { found: "good", warning: "warn", missing: "bad" };

/** What a look at a pool found, the missing first, each with the command that would mend it. */
export function Findings({ findings }: { findings: NonNullable<PoolDone["findings"]> }) {
  const order = ["missing", "warning", "found"];
  const sorted = [...findings].sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state));
  return (
    <ul className="findings">
      {sorted.map((finding, i) => (
        <li key={i}>
          <p><Badge tone={tones[finding.state] ?? "plain"}>{finding.state}</Badge> <b>{finding.what}</b> {finding.text}</p>
          {finding.mend && <Command text={finding.mend} />}
        </li>
      ))}
    </ul>
  );
}
