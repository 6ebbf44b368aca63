/** Names of nodes as a host list: n1, n2, n3, m7 is m7,n[1-3]. */
export function hostList(names: readonly string[]): string {
  const groups = new Map<string, string[]>();
  const single: string[] = [];
  for (const name of new Set(names)) {
    const match = /^(.*?)(\d+)$/.exec(name);
    if (!match || match[1] === undefined || match[2] === undefined) single.push(name);
    else groups.set(match[1], [...(groups.get(match[1]) ?? []), match[2]]);
  }
  for (const [prefix, numbers] of groups) {
    const ranges = rangesOf(numbers);
    single.push(ranges.length === 1 && !ranges[0]?.includes("-") ? prefix + ranges[0] : `${prefix}[${ranges.join(",")}]`);
  }
  return single.sort().join(",");
}

function rangesOf(numbers: string[]): string[] {
  const sorted = [...numbers].sort((a, b) => Number(a) - Number(b));
  const ranges: [string, string][] = [];
  for (const each of sorted) {
    const last = ranges.at(-1);
    if (last && Number(each) === Number(last[1]) + 1 && (each.length === last[1].length || !each.startsWith("0"))) last[1] = each;
    else ranges.push([each, each]);
  }
  return ranges.map(([from, to]) => (from === to ? from : `${from}-${to}`));
}

/** The names of a host list: v[1-3,7],w is v1, v2, v3, v7, w. Zeros at the front are kept. */
export function expandHosts(list: string): string[] {
  const names: string[] = [];
  for (const part of list.match(/[^,[]+(?:\[[^\]]*\][^,[]*)*|\[[^\]]*\][^,]*/g) ?? []) names.push(...expandPart(part));
  return names;
}

function expandPart(part: string): string[] {
  const match = /^([^[]*)\[([^\]]*)\](.*)$/.exec(part);
  if (!match) return [part];
  const [, before = "", ranges = "", after = ""] = match;
  const rest = expandPart(after);
  return ranges.split(",").flatMap((range) => {
    const [from = "", to = from] = range.split("-");
    const numbers = Array.from({ length: Number(to) - Number(from) + 1 }, (_, i) => String(Number(from) + i).padStart(from.length, "0"));
    return numbers.flatMap((number) => rest.map((tail) => before + number + tail));
  });
}
