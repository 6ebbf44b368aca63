/** Round times that divide a range, at most about so many. */
export function ticks(from: number, to: number, wanted: number): number[] {
  const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
  const step = steps.find((each) => (to - from) / each <= wanted) ?? 604800 * Math.ceil((to - from) / 604800 / wanted);
  const offset = new Date(from * 1000).getTimezoneOffset() * 60;
  const first = Math.ceil((from - offset) / step) * step + offset;
  const result = [];
  for (let at = first; at <= to; at += step) result.push(at);
  return result;
}
