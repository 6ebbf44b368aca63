import type { QueueFilter } from "../../api/columns";
import { setQuery, useQuery } from "../../router/location";

// The filter of the queue is the address: /queue?view=waiting&user=anna&account=nlp.

export const views = ["live", "running", "waiting", "ended"] as const;
export type View = (typeof views)[number];

export const fields = ["user", "account", "partition", "qos", "name", "node", "id", "state"] as const;
export type Field = (typeof fields)[number];

const parameters: Record<Field, keyof QueueFilter> = {
  user: "users", account: "accounts", partition: "partitions", qos: "qos", name: "names", node: "nodes", id: "ids", state: "states",
};

// The history has jobs that run or wait too.
const ended = ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "LOST"];

export interface Filter {
  view: View;
  values: Partial<Record<Field, string>>;
}

/** The filter that the address has. */
export function useQueueFilter(): Filter {
  const query = useQuery();
  const view = views.find((each) => each === query.get("view")) ?? "live";
  const values: Filter["values"] = {};
  for (const field of fields) {
    const value = query.get(field);
    if (value) values[field] = value;
  }
  return { view, values };
}

/** Sets or, with an empty value, removes a field of the filter. */
export function setField(field: Field | "view", value: string) {
  setQuery({ [field]: field === "view" && value === "live" ? "" : value });
}

/** The filter as parameters of the API. */
export function parametersOf(filter: Filter): QueueFilter {
  const result: QueueFilter = {};
  for (const field of fields) {
    const value = filter.values[field];
    if (value !== undefined) result[parameters[field]] = [value];
  }
  if (result.states === undefined) {
    if (filter.view === "running") result.states = ["RUNNING", "SUSPENDED"];
    if (filter.view === "waiting") result.states = ["PENDING"];
    if (filter.view === "ended") result.states = ended;
  }
  return result;
}

/** The command that prints the same. */
export function commandOf(filter: Filter): string {
  const options = fields.flatMap((field) => {
    const value = filter.values[field];
    if (value === undefined) return [];
    return field === "id" ? [quoted(value)] : [`--${field} ${quoted(value)}`];
  });
  if (filter.values.state === undefined) {
    if (filter.view === "running") options.push("--state RUNNING,SUSPENDED");
    if (filter.view === "waiting") options.push("--state PENDING");
  }
  return ["cox", filter.view === "ended" ? "history" : "queue", ...options].join(" ");
}

function quoted(value: string): string {
  return /^[\w.,:/@%+=[\]-]+$/.test(value) && !/[[\]]/.test(value) ? value : `'${value.replaceAll("'", `'\\''`)}'`;
}

/**
 * Reads what somebody typed: "user:anna" or "user=anna" is a field, a number is a job, anything else
 * is the name of a job.
 */
export function parseTyped(text: string): [Field, string] | undefined {
  const typed = text.trim();
  if (typed === "") return undefined;
  const match = /^(\w+)[:=]\s*(.+)$/.exec(typed);
  const field = fields.find((each) => each === match?.[1]?.toLowerCase());
  if (field !== undefined && match?.[2] !== undefined) return [field, field === "state" ? match[2].toUpperCase() : match[2]];
  if (/^\d+(_\d+)?$/.test(typed)) return ["id", typed];
  return ["name", typed];
}
