const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** "512 B", "1.5 GiB". */
export function bytes(count: number): string {
  let unit = 0;
  while (count >= 1024 && unit < units.length - 1) {
    count /= 1024;
    unit++;
  }
  return `${unit === 0 || count >= 100 ? Math.round(count) : Number(count.toFixed(1))} ${units[unit]}`;
}

const grouped = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 1 });

/** "12,345.6". */
export function number(count: number): string {
  return grouped.format(count);
}

/** A number a second, exact enough to see that it is not zero: "0.02", "1.5". */
export function smallRate(perSecond: number): string {
  return perSecond > 0 && perSecond < 0.1 ? perSecond.toFixed(2) : number(perSecond);
}

/** "1 node", "8 nodes", "2 processes". */
export function count(n: number, noun: string): string {
  return `${number(n)} ${n === 1 ? noun : /(s|x|ch|sh)$/.test(noun) ? `${noun}es` : `${noun}s`}`;
}

/** "41 %"; of nothing, nothing. */
export function percent(part: number, whole: number): string {
  if (whole === 0) return "–";
  return `${Math.round((100 * part) / whole)} %`;
}
