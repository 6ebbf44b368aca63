import { fullTime, shortTime } from "../format/time";
import { useNow } from "./useNow";

/** A time of the API, short, with the whole of it as a tooltip. 0: none. */
export function When({ at }: { at: number }) {
  const now = useNow(60);
  if (at === 0) return null;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={fullTime(at)}>
      {shortTime(at, now)}
    </time>
  );
}
