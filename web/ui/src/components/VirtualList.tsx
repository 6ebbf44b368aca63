import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useKeys } from "../shell/keys";
import "./VirtualList.css";

interface VirtualListProps<T> {
  label: string;
  count: number;
  itemAt: (index: number) => T | undefined; // undefined: it is on its way
  keyOf: (item: T) => string;
  rowHeight: number; // CSS pixels
  header: ReactNode; // role=row with role=columnheader cells
  row: (item: T) => ReactNode; // role=gridcell cells
  onOpen: (item: T) => void;
  onRange?: (first: number, last: number) => void; // which rows are on the screen
  className?: string;
}

/**
 * A list of any length of which only the rows on the screen exist. j and k choose a row, Enter opens
 * it. The window scrolls, so that its scroll bar and the space key work.
 */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { count, itemAt, keyOf, rowHeight, onOpen, onRange } = props;
  const body = useRef<HTMLDivElement>(null);
  const top = useTop(body);
  const [chosen, setChosen] = useState({ index: -1, key: "" });
  const virtual = useWindowVirtualizer({
    count,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin: top,
    scrollPaddingStart: 110, // the bar and the header
    scrollPaddingEnd: 24,
  });
  useEffect(() => virtual.measure(), [virtual, rowHeight]);

  const rows = virtual.getVirtualItems();
  const first = rows[0]?.index ?? 0;
  const last = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (last >= 0) onRange?.(first, last);
  }, [first, last, onRange]);

  const keyAt = (index: number) => {
    const item = itemAt(index);
    return item === undefined ? "" : keyOf(item);
  };
  // The chosen row stays chosen where rows come and go above it, as long as it is near.
  const at = chosen.index >= 0 && keyAt(chosen.index) !== chosen.key ? (rows.find((row) => keyAt(row.index) === chosen.key)?.index ?? chosen.index) : chosen.index;
  const choose = (wanted: number) => {
    const index = Math.max(0, Math.min(count - 1, wanted));
    setChosen({ index, key: keyAt(index) });
    virtual.scrollToIndex(index, { align: "auto" });
  };
  const open = () => {
    const item = at < 0 ? undefined : itemAt(at);
    if (item !== undefined) onOpen(item);
  };
  useKeys({ j: () => choose(at + 1), k: () => choose(at - 1), Enter: open, ArrowDown: () => choose(at + 1), ArrowUp: () => choose(at - 1), Home: () => choose(0), End: () => choose(count - 1) });

  return (
    <div className={`virtual ${props.className ?? ""}`} role="grid" aria-label={props.label} aria-rowcount={count + 1} tabIndex={0}>
      <div className="virtual-head" role="rowgroup">{props.header}</div>
      <div className="virtual-body" role="rowgroup" ref={body} style={{ height: virtual.getTotalSize() }}>
        {rows.map(({ index, start }) => {
          const item = itemAt(index);
          return (
            <div
              key={item === undefined ? index : keyOf(item)}
              className="virtual-row"
              role="row"
              aria-rowindex={index + 2}
              aria-selected={index === at}
              style={{ height: rowHeight, transform: `translateY(${start - top}px)` }}
              onClick={(event) => {
                if (item === undefined) return;
                setChosen({ index, key: keyOf(item) });
                if (!(event.target as HTMLElement).closest("a, button") && window.getSelection()?.isCollapsed !== false) onOpen(item);
              }}
            >
              {item === undefined ? <span role="gridcell" className="virtual-missing">…</span> : props.row(item)}
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** How far below the top of the page an element is. */
function useTop(element: React.RefObject<HTMLElement | null>): number {
  const [top, setTop] = useState(0);
  useEffect(() => {
    const measure = () => setTop((element.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, [element]);
  return top;
}
