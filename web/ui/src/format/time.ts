// Times and durations as the commands of cox print them.

/** "0.3 s", "41 s", "12 min", "2 h 14 min", "3 d 4 h". */
export function duration(seconds: number): string {
  if (!Number.isFinite(seconds)) return "";
  if (seconds < 0) seconds = 0;
  if (seconds > 0 && seconds < 10) return `${(Math.floor(seconds * 10) / 10).toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return pair(seconds, 60, "min", 1, "s", 10 * 60);
  if (seconds < 86400) return pair(seconds, 3600, "h", 60, "min", Infinity);
  return pair(seconds, 86400, "d", 3600, "h", Infinity);
}

function pair(seconds: number, large: number, largeUnit: string, small: number, smallUnit: string, until: number): string {
  const whole = Math.floor(seconds / large);
  const rest = Math.floor((seconds % large) / small);
  return rest === 0 || seconds >= until ? `${whole} ${largeUnit}` : `${whole} ${largeUnit} ${rest} ${smallUnit}`;
}

/** A time of the API in Unix seconds; 0: none. */
export function unix(at: string | undefined): number {
  if (!at) return 0;
  const ms = Date.parse(at);
  return Number.isNaN(ms) || ms <= 0 ? 0 : ms / 1000;
}

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const exact = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const weekday = new Intl.DateTimeFormat("en-GB", { weekday: "short" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const year = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

/** "14:05" today, "Tue 14:05" within six days, "3 Nov 14:05", "3 Nov 2025". */
export function shortTime(at: number, now: number): string {
  const then = new Date(at * 1000);
  const today = new Date(now * 1000);
  if (then.toDateString() === today.toDateString()) return clock.format(then);
  if (Math.abs(at - now) < 6 * 86400) return `${weekday.format(then)} ${clock.format(then)}`;
  if (then.getFullYear() === today.getFullYear()) return `${date.format(then)} ${clock.format(then)}`;
  return year.format(then);
}

/** "29 Nov 2026, 14:05:09": for a tooltip. */
export function fullTime(at: number): string {
  const then = new Date(at * 1000);
  return `${year.format(then)}, ${exact.format(then)}`;
}

/** A latency in seconds: "2.5 ms", "80 ms", "1.2 s", "60 s or more": gateways measure up to a minute. */
export function shortWait(seconds: number): string {
  if (seconds >= 60) return "60 s or more";
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
}
