import { useEffect, useState } from "react";

/** The time in Unix seconds, new each so many seconds. */
export function useNow(every: number): number {
  const [now, setNow] = useState(() => Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), every * 1000);
    return () => clearInterval(timer);
  }, [every]);
  return now;
}
