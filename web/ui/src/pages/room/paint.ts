import { scaleLinear, scaleOrdinal } from "d3-scale";
import type { Node } from "../../api/types";

/** What the colours of the machine room say. */
export const paints = ["state", "use", "user", "account", "pool"] as const;
export type Paint = (typeof paints)[number];

export const paintLabels: Record<Paint, string> = { state: "State", use: "Use", user: "User", account: "Account", pool: "Owner" };

/** Who holds what: by the name of a job. */
export type Holders = Map<string, { user: string; account: string }>;

// Ten hues of equal lightness that people who do not see red and green apart can tell apart.
const hues = ["#4878d0", "#ee854a", "#3f9d5c", "#b65fc4", "#c9a227", "#2fa5a5", "#d65f7b", "#8c7bd8", "#7a8b3a", "#8c613c"];
const use = scaleLinear<string>([0, 0.5, 1], ["#9db8e0", "#4d86d6", "#173f8a"]).clamp(true);

export const colours = {
  free: "free", // the theme's
  used: "#4878d0",
  foreign: "#8a8f98",
  fenced: "#c8452f",
  draining: "#d29a1f",
  unknown: "#8a8f98",
} as const;

/** The colours of one picture, and its legend as it fills. */
export class Palette {
  private readonly ordinal = scaleOrdinal<string, string>(hues);
  private readonly counts = new Map<string, number>();

  constructor(readonly paint: Paint, private readonly holders: Holders) {
    // Names keep their colours as long as the set of users is the same: they are dealt in order.
    if (paint === "user" || paint === "account") {
      this.ordinal.domain([...new Set([...holders.values()].map((holder) => holder[paint] || holder.user))].sort());
    }
  }

  /** The colour of a device that jobs hold. */
  device(jobs: readonly string[]): string {
    const name = this.nameOf(jobs[0] ?? "");
    return name === undefined ? colours.used : this.named(name);
  }

  /** The colour of a node as a whole, or undefined: the theme's. */
  node(node: Node): string | undefined {
    if (this.paint === "pool") return this.named(node.owner ?? node.pool);
    if (this.paint === "use") return use(useOf(node));
    return undefined;
  }

  /** Names and their colours, those that hold most first. */
  legend(): [name: string, colour: string, count: number][] {
    return [...this.counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => [name, this.ordinal(name), count]);
  }

  private named(name: string): string {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    return this.ordinal(name);
  }

  private nameOf(job: string): string | undefined {
    if (this.paint !== "user" && this.paint !== "account") return undefined;
    const holder = this.holders.get(job);
    if (holder === undefined) return "a job of others";
    return holder[this.paint] || holder.user;
  }
}

/** The part of a node that is used: of its devices, or of its CPUs where it has none. */
export function useOf(node: Node): number {
  const devices = node.devices ?? [];
  const counted = node.counted ?? [];
  const all = devices.length + counted.reduce((sum, each) => sum + each.all, 0);
  const used = devices.filter((device) => device.jobs?.length).length + counted.reduce((sum, each) => sum + each.used, 0);
  if (all > 0) return used / all;
  return node.cpus > 0 ? node.cpus_used / node.cpus : 0;
}
