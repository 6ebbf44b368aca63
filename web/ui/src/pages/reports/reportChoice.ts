export const kinds = ["usage", "waits", "fairness", "efficiency", "cost"] as const;
export type Kind = (typeof kinds)[number];

export const kindLabels: Record<Kind, string> = { usage: "Usage", waits: "Waits", fairness: "Fairness", efficiency: "Efficiency", cost: "Cost" };

export const periods = [["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"], ["365d", "1 year"]] as const;
export type Period = (typeof periods)[number][0];

const groupings = ["account", "user", "qos", "pool", "service"] as const;
export type Grouping = (typeof groupings)[number];

/** Shares are of accounts and their users alone. */
const shareGroupings = ["account", "user"] as const satisfies readonly Grouping[];

/** How a report may be grouped. */
export function groupingsOf(kind: Kind): readonly Grouping[] {
  return kind === "fairness" ? shareGroupings : groupings;
}

/** The beginning of a period, to the minute, so that a report that was just made is not made again. */
export function windowOf(period: Period): string {
  const minute = Math.floor(Date.now() / 60_000) * 60_000;
  return new Date(minute - Number.parseInt(period) * 86_400_000).toISOString();
}
