import { useEffect, useState } from "react";
import { address, send } from "../../../api/client";
import { Problem } from "../../../api/problem";
import { LogText } from "./logText";

export interface LogSource {
  job: string;
  stream: "stdout" | "stderr";
  step?: string;
  rank?: string;
}

export interface Log {
  lines: readonly string[];
  dropped: number; // lines before the first that is kept
  following: boolean; // the server sends more as it comes
  error?: Problem;
}

const tail = 2000; // lines that a log begins with
const empty: Log = { lines: [], dropped: 0, following: true };

/** The output of a job or of one rank: its last lines, then what follows until the job has ended. */
export function useLog(source: LogSource): Log {
  const [log, setLog] = useState<Log>(empty);
  const { job, stream, step, rank } = source;
  useEffect(() => {
    const stop = new AbortController();
    setLog(empty);
    const text = new LogText();
    let frame = 0;
    const show = (following: boolean) => {
      cancelAnimationFrame(frame);
      frame = requestAnimationFrame(() => setLog({ lines: text.lines(), dropped: text.dropped, following }));
    };
    const url = address("/v1/jobs/{job}/logs", { job }, { stream, step, rank, follow: true, tail });
    read(url, stop.signal, (chunk) => {
      text.append(chunk);
      show(true);
    }).then(
      () => show(false),
      (error: unknown) => {
        if (stop.signal.aborted) return;
        cancelAnimationFrame(frame);
        setLog({ lines: text.lines(), dropped: text.dropped, following: false, error: Problem.from(error) });
      },
    );
    return () => {
      stop.abort();
      cancelAnimationFrame(frame);
    };
  }, [job, stream, step, rank]);
  return log;
}

async function read(url: string, signal: AbortSignal, sink: (chunk: string) => void) {
  const response = await send(url, { signal });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return;
    sink(chunk.value);
  }
}
