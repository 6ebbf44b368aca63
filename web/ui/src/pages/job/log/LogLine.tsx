/** A line with what was searched for marked. */
export function LogLine({ text, needle }: { text: string; needle: string }) {
  if (needle === "") return <span>{text}</span>;
  const parts = [];
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = lower.indexOf(needle); at >= 0; at = lower.indexOf(needle, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + needle.length)}</mark>);
    from = at + needle.length;
  }
  parts.push(text.slice(from));
  return <span>{parts}</span>;
}
