import { scaleLinear, scaleOrdinal } from "d3-scale";
import type { Cell, RoomNode } from "./roomNode";

/** What the colours of the machine room say. */
export const paints = ["state", "use", "user", "account", "pool"] as const;
export type Paint = (typeof paints)[number];

export const paintLabels: Record<Paint, string> = { state: "State", use: "Use", user: "User", account: "Account", pool: "Owner" };

// Ten hues of equal lightness that people who do not see red and green apart can tell apart.
const hues = ["#4878d0", "#ee854a", "#3f9d5c", "#b65fc4", "#c9a227", "#2fa5a5", "#d65f7b", "#8c7bd8", "#7a8b3a", "#8c613c"];
const use = scaleLinear<string>([0, 0.5, 1], ["#9db8e0", "#4d86d6", "#173f8a"]).clamp(true);

export const colours = {
  used: "#4878d0",
  foreign: "#8a8f98",
  fenced: "#c8452f",
  draining: "#d29a1f",
} as const;

/** The colours of one picture, and its legend. */
export class Palette {
  private readonly ordinal = scaleOrdinal<string, string>(hues);
  private readonly counts = new Map<string, number>();

  constructor(readonly paint: Paint, nodes: readonly RoomNode[]) {
    for (const node of nodes) {
      if (paint === "pool") this.add(node.owner);
      else if (paint === "user" || paint === "account") for (const cell of node.cells) if (cell.mark === "u") this.add(this.nameOf(cell, node));
    }
    // Names keep their colours as long as the set of them is the same: they are dealt in order.
    this.ordinal.domain([...this.counts.keys()].sort());
  }

  /** The colour of a device that a job holds. */
  device(cell: Cell, node: RoomNode): string {
    return this.paint === "user" || this.paint === "account" ? this.ordinal(this.nameOf(cell, node)) : colours.used;
  }

  /** The colour of a node as a whole, or undefined: the theme's. */
  node(node: RoomNode): string | undefined {
    if (this.paint === "pool") return this.ordinal(node.owner);
    return this.paint === "use" ? use(node.share) : undefined;
  }

  /** Names and their colours, those that hold most first. */
  legend(): [name: string, colour: string][] {
    return [...this.counts].sort((a, b) => b[1] - a[1]).map(([name]) => [name, this.ordinal(name)]);
  }

  private add(name: string) {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
  }

  private nameOf({ holder }: Cell, node: RoomNode): string {
    if (holder === undefined) return node.label || "jobs of others";
    return this.paint === "user" ? holder.user : holder.account || holder.user;
  }
}
