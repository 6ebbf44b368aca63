import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import { Empty } from "../../../components/Empty";
import { ProblemView } from "../../../components/Problem";
import { count, number } from "../../../format/number";
import { LogLine } from "./LogLine";
import { useLog, type LogSource } from "./useLog";
import "./LogView.css";

const lineHeight = 20;

interface LogViewProps {
  source: LogSource;
  ended: boolean;
}

/** A log: followed at its end unless the reader scrolls up, and searched. */
export function LogView({ source, ended }: LogViewProps) {
  const log = useLog(source);
  const [search, setSearch] = useState("");
  const [only, setOnly] = useState(false);
  const [hit, setHit] = useState(-1);
  const [follows, setFollows] = useState(true);
  const view = useRef<HTMLDivElement>(null);

  const needle = search.toLowerCase();
  const hits = useMemo(() => (needle === "" ? [] : log.lines.flatMap((line, i) => (line.toLowerCase().includes(needle) ? [i] : []))), [log.lines, needle]);
  const filtered = only && needle !== "";
  const shown = filtered ? hits.length : log.lines.length;
  const lineAt = (index: number) => (filtered ? (hits[index] ?? 0) : index);

  const virtual = useVirtualizer({ count: shown, getScrollElement: () => view.current, estimateSize: () => lineHeight, overscan: 30 });
  useEffect(() => {
    if (follows && shown > 0) virtual.scrollToIndex(shown - 1, { align: "end" });
  }, [follows, shown, virtual]);

  const goTo = (step: number) => {
    if (hits.length === 0) return;
    const next = (hit + step + hits.length) % hits.length;
    setHit(next);
    setFollows(false);
    virtual.scrollToIndex(filtered ? next : (hits[next] ?? 0), { align: "center" });
  };
  const scrolled = () => {
    const box = view.current;
    if (box) setFollows(box.scrollHeight - box.scrollTop - box.clientHeight < lineHeight);
  };

  return (
    <div className="log">
      <div className="log-tools">
        <input
          data-search
          type="search"
          placeholder="Search"
          aria-label="Search the log; Enter goes to the next hit, Shift+Enter to the one before"
          value={search}
          onChange={(event) => {
            setSearch(event.target.value);
            setHit(-1);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") goTo(event.shiftKey ? -1 : 1);
          }}
        />
        <span className="log-hits" role="status">{needle !== "" && (hits.length === 0 ? "no hit" : `${hit >= 0 ? `${number(hit + 1)} of ` : ""}${number(hits.length)}`)}</span>
        <label className="log-option"><input type="checkbox" checked={only} onChange={(event) => setOnly(event.target.checked)} /> hits only</label>
        <label className="log-option"><input type="checkbox" checked={follows} onChange={(event) => setFollows(event.target.checked)} /> follow</label>
        <span className="log-state faint">{log.following ? (ended ? "reading" : "live") : count(log.lines.length + log.dropped, "line")}</span>
      </div>
      {log.error && <ProblemView error={log.error} />}
      {log.dropped > 0 && <p className="faint log-note">the first {number(log.dropped)} lines are not shown; cox logs has them</p>}
      {log.lines.length === 0 && !log.error ? (
        <Empty><p>{log.following ? "No output yet." : "The output is empty."}</p></Empty>
      ) : (
        <div className="log-lines" ref={view} onScroll={scrolled} tabIndex={0} role="log" aria-live="off" aria-label="Output">
          <div className="log-body" style={{ height: virtual.getTotalSize() }}>
            {virtual.getVirtualItems().map((each) => {
              const index = lineAt(each.index);
              return (
                <div key={each.key} className="log-line" data-hit={hits[hit] === index || undefined} style={{ transform: `translateY(${each.start}px)` }}>
                  <span className="log-number">{index + 1 + log.dropped}</span>
                  <LogLine text={log.lines[index] ?? ""} needle={needle} />
                </div>
              );
            })}
          </div>
        </div>
      )}
    </div>
  );
}
