import type { components } from "./schema";

// Short names for the types of the API.

type Schemas = components["schemas"];

export type Job = Schemas["Job"];
export type JobSpec = Schemas["JobSpec"];
export type Task = Schemas["Task"];
export type PastAttempt = Schemas["PastAttempt"];
export type Why = Schemas["Why"];
export type Usage = Schemas["Usage"];
export type JobSeries = Schemas["Series"];
export type Priority = Schemas["Priority"];
export type Node = Schemas["Node"];
export type Device = Schemas["Device"];
export type Machine = Schemas["Machine"];
export type Overview = Schemas["Overview"];
export type PoolUse = Schemas["PoolUse"];
export type Plan = Schemas["Plan"];
export type PlannedJob = Schemas["PlannedJob"];
export type NodeRow = Schemas["NodeRow"];
export type Topology = Schemas["Topology"];
export type Pool = Schemas["Pool"];
export type PoolDone = Schemas["PoolDone"];
export type Service = Schemas["Service"];
export type Reservation = Schemas["Reservation"];
export type ServerInfo = Schemas["ServerInfo"];
export type Submit = Schemas["Submit"];
export type Submitted = Schemas["Submitted"];
export type Change = Schemas["Change"];
export type JobCounts = Schemas["JobCounts"];
export type ChangeEvent = Schemas["Event"];
