import type { components } from "../../api/schema";

type Use = components["schemas"]["RusageUse"];

// Which quantities are known: bits of Use.known. What nobody measured is unknown, which is not zero.
const cpu = 1;
const memory = 2;
const io = 4;

export const hasCPU = (use: Use) => ((use.known ?? 0) & cpu) !== 0;
export const hasMemory = (use: Use) => ((use.known ?? 0) & memory) !== 0;
export const hasIO = (use: Use) => ((use.known ?? 0) & io) !== 0;

/** CPU time in seconds; the API has nanoseconds. */
export function cpuSeconds(use: Use): number {
  return ((use.user ?? 0) + (use.system ?? 0)) / 1e9;
}
