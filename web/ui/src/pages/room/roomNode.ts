import type { NodeRow, Topology } from "../../api/types";
import { expandHosts } from "../../format/hosts";

/** What one device does: free, used, used by others, fenced by a check, down. */
export type Mark = "." | "u" | "f" | "x" | "d";

export interface Cell {
  mark: Mark;
  holder?: Holder;
}

export interface Holder {
  job: string;
  user: string;
  account: string;
}

/** A node of the map. */
export interface RoomNode {
  name: string;
  pool: string;
  path: readonly string[];
  state: string; // "": the map does not say
  owner: string;
  label: string; // of what the colours are of, where the map has no holders; "": none
  why: string;
  handover: boolean;
  fenced: boolean;
  cells: readonly Cell[];
  share: number; // used of its devices, or of its CPUs where it has none
  jobs: readonly string[];
}

/** A node with each of its devices. */
export function fromRow(row: NodeRow): RoomNode {
  const cells: Cell[] = [...(row.devices ?? "")].map((mark) => ({ mark: mark as Mark }));
  for (const counted of row.counted ?? []) for (let i = 0; i < counted.all; i++) cells.push({ mark: i < counted.used ? "u" : "." });
  for (const job of row.jobs ?? []) {
    for (const at of job.devices ?? []) {
      const cell = cells[at];
      if (cell) cell.holder = { job: job.job, user: job.user ?? "", account: job.account ?? "" };
    }
  }
  const used = cells.filter((cell) => cell.mark === "u").length;
  return {
    name: row.name, pool: row.pool, path: row.path ?? [], state: row.state, owner: row.owner ?? row.pool, label: "", why: row.why ?? "",
    handover: Boolean(row.handover), fenced: Boolean(row.fences), cells, jobs: (row.jobs ?? []).map((job) => job.job),
    share: cells.length > 0 ? used / cells.length : row.cpus > 0 ? row.cpus_used / row.cpus : 0,
  };
}

/** The nodes of a map that knows of each node its number of devices and one label. */
export function fromTopology(map: Topology, by: string): RoomNode[] {
  return (map.groups ?? []).flatMap((group) =>
    expandHosts(group.nodes).map((name, i): RoomNode => {
      const label = map.labels?.[group.label?.[i] ?? -1] ?? "";
      const devices = group.devices?.[i] ?? 0;
      const used = group.used?.[i] ?? 0;
      return {
        name, pool: group.pool, path: group.path ?? [], state: by === "state" ? label : "", owner: by === "pool" ? label : group.pool, label, why: "",
        handover: false, fenced: false, jobs: [], share: devices > 0 ? used / devices : used / 100,
        cells: Array.from({ length: devices }, (_, at): Cell => ({ mark: at < used ? "u" : "." })),
      };
    }),
  );
}

/** The node in a few lines, for a tooltip. */
export function nodeText(node: RoomNode): string {
  const count = (mark: Mark) => node.cells.filter((cell) => cell.mark === mark).length;
  const lines = [`${node.name}${node.state ? `: ${node.state}` : ""}${node.why ? `, ${node.why}` : ""}`];
  if (node.cells.length > 0) lines.push(`${count("u")} of ${node.cells.length} devices used`);
  else lines.push(`${Math.round(node.share * 100)} % of its CPUs used`);
  if (count("f") > 0) lines.push(`${count("f")} used by others`);
  if (count("x") > 0) lines.push(`${count("x")} fenced by a check`);
  if (node.jobs.length > 0) lines.push(`${node.jobs.length === 1 ? "job" : "jobs"} ${node.jobs.slice(0, 8).join(", ")}${node.jobs.length > 8 ? " …" : ""}`);
  if (node.label && node.state !== node.label) lines.push(node.label);
  return lines.join("\n");
}
