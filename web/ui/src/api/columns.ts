import { address, send } from "./client";

/** A row of the queue: the columns of a list of jobs that the console shows. */
export interface QueueRow {
  name: string;
  jobName: string;
  user: string;
  account: string;
  partition: string;
  qos: string;
  pool: string;
  state: string;
  flags: string[];
  reason: string;
  reasonText: string;
  priority: number;
  submitted: number; // Unix seconds; 0: none, as all times here
  started: number;
  ended: number;
  startsBy: number;
  timeLimit: number; // seconds; 0: none
  nodes: number;
  nodeList: string;
  gpus: number;
  cpus: number;
}

const columns = [
  "name", "job_name", "user", "account", "partition", "qos", "pool", "state", "flags", "reason", "reason_text", "priority",
  "submitted", "started", "ended", "starts_by", "time_limit", "nodes_min", "node_list", "gpus", "cpus",
] as const;

/** What a list of jobs is narrowed to, as the API names it. */
export interface QueueFilter {
  ids?: string[];
  users?: string[];
  accounts?: string[];
  partitions?: string[];
  qos?: string[];
  names?: string[];
  states?: string[];
  nodes?: string[];
  reasons?: string[];
  pools?: string[];
  match?: string;
}

export interface QueuePage {
  rows: QueueRow[];
  next: string; // cursor of the next page; empty: this is the last one
  total: number; // rows of all pages of a sorted list
}

export interface QueueOptions {
  limit: number;
  cursor?: string;
  sort?: string; // a column of the API, with - before it: largest first
  offset?: number; // of a sorted list: rows before the page
  signal?: AbortSignal;
}

/** Fetches a page of the queue, or of the history, as text with columns: a tenth of the same in JSON. */
export async function fetchQueue(
  route: "/v1/jobs" | "/v1/history",
  filter: QueueFilter,
  options: QueueOptions,
): Promise<QueuePage> {
  const url = address(route, {}, {
    ...filter,
    columns: [...columns],
    limit: options.limit,
    cursor: options.cursor,
    sort: options.sort,
    offset: options.offset || undefined,
    collapse: route === "/v1/jobs",
  });
  const response = await send(url, { signal: options.signal ?? null });
  return {
    rows: parseRows(await response.text()),
    next: response.headers.get("Cox-Next") ?? "",
    total: Number(response.headers.get("Cox-Total") ?? 0),
  };
}

/** Reads lines of columns between tabs. */
export function parseRows(text: string): QueueRow[] {
  return text.split("\n").filter((line) => line !== "").map((line) => rowOf(line.split("\t").map(unescape)));
}

const escapes: Record<string, string> = { "\\t": "\t", "\\n": "\n", "\\r": "\r", "\\\\": "\\" };

function unescape(field: string): string {
  return field.replace(/\\[tnr\\]/g, (escape) => escapes[escape] ?? escape);
}

function rowOf(fields: string[]): QueueRow {
  const field = (name: (typeof columns)[number]) => fields[columns.indexOf(name)] ?? "";
  const number = (name: (typeof columns)[number]) => Number(field(name)) || 0;
  return {
    name: field("name"),
    jobName: field("job_name"),
    user: field("user"),
    account: field("account"),
    partition: field("partition"),
    qos: field("qos"),
    pool: field("pool"),
    state: field("state"),
    flags: field("flags").split(",").filter(Boolean),
    reason: field("reason"),
    reasonText: field("reason_text"),
    priority: number("priority"),
    submitted: number("submitted"),
    started: number("started"),
    ended: number("ended"),
    startsBy: number("starts_by"),
    timeLimit: number("time_limit"),
    nodes: number("nodes_min"),
    nodeList: field("node_list"),
    gpus: number("gpus"),
    cpus: number("cpus"),
  };
}
