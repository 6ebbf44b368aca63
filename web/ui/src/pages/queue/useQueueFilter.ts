import type { QueueFilter } from "../../api/columns";
import { setQuery, useQuery } from "../../router/location";

// The filter of the queue is the address: /queue?view=waiting&user=anna&account=nlp.

export const views = ["live", "running", "waiting", "ended"] as const;
export type View = (typeof views)[number];

export const fields = ["find", "user", "account", "pool", "partition", "qos", "name", "node", "id", "state", "reason"] as const;
export type Field = (typeof fields)[number];

const parameters: Record<Exclude<Field, "find">, Exclude<keyof QueueFilter, "match">> = {
  pool: "pools", reason: "reasons", user: "users", account: "accounts", partition: "partitions", qos: "qos", name: "names", node: "nodes", id: "ids", state: "states",
};

// The history has jobs that run or wait too.
const ended = ["COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "LOST"];

export interface Filter {
  view: View;
  values: Partial<Record<Field, string>>;
  sort: string; // as the API names it
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
  return { view, values, sort: query.get("sort") ?? "id" };
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
    if (value === undefined) continue;
    if (field === "find") result.match = value;
    else result[parameters[field]] = value.split(",");
  }
  if (result.states === undefined) {
    if (filter.view === "running") result.states = ["RUNNING", "SUSPENDED"];
    if (filter.view === "waiting") result.states = ["PENDING"];
    if (filter.view === "ended") result.states = ended;
  }
  return result;
}

// What cox queue and cox history have an option for.
const onCommandLine: readonly Field[] = ["user", "account", "partition", "qos", "name", "node", "id", "state"];

/** The command that prints the same, as far as it has options for it. */
export function commandOf(filter: Filter): string {
  const options = fields.flatMap((field) => {
    const value = filter.values[field];
    if (value === undefined || !onCommandLine.includes(field)) return [];
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
 * is looked for in numbers, names, users and accounts.
 */
export function parseTyped(text: string): [Field, string] | undefined {
  const typed = text.trim();
  if (typed === "") return undefined;
  const match = /^(\w+)[:=]\s*(.+)$/.exec(typed);
  const field = fields.find((each) => each === match?.[1]?.toLowerCase());
  if (field !== undefined && match?.[2] !== undefined) return [field, field === "state" ? match[2].toUpperCase() : match[2]];
  if (/^\d+(_\d+)?$/.test(typed)) return ["id", typed];
  return ["find", typed];
}
