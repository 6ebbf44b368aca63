import { useWindowVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState, type ReactNode } from "react";
import { useKeys } from "../shell/keys";
import "./VirtualList.css";

interface VirtualListProps<T> {
  label: string;
  items: readonly T[];
  keyOf: (item: T) => string;
  rowHeight: number; // CSS pixels
  header: ReactNode; // role=row with role=columnheader cells
  row: (item: T) => ReactNode; // role=gridcell cells
  onOpen: (item: T) => void;
  onEnd?: () => void; // the last rows are on the screen
  className?: string;
}

/**
 * A list of any length of which only the rows on the screen exist. j and k choose a row, Enter opens
 * it. The window scrolls, so that the browser's search, its scroll bar and the space key work.
 */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const { items, keyOf, rowHeight, onOpen, onEnd } = props;
  const body = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [chosen, setChosen] = useState<string>();
  useEffect(() => {
    const measure = () => setTop((body.current?.getBoundingClientRect().top ?? 0) + window.scrollY);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(document.body);
    return () => observer.disconnect();
  }, []);
  const virtual = useWindowVirtualizer({
    count: items.length,
    estimateSize: () => rowHeight,
    overscan: 12,
    scrollMargin: top,
    scrollPaddingStart: 110, // the bar and the header
    scrollPaddingEnd: 24,
    getItemKey: (i) => keyOf(items[i] as T),
  });
  useEffect(() => virtual.measure(), [virtual, rowHeight]);

  const rows = virtual.getVirtualItems();
  const last = rows.at(-1)?.index ?? -1;
  useEffect(() => {
    if (last >= items.length - 1 && items.length > 0) onEnd?.();
  }, [last, items.length, onEnd]);

  const at = items.findIndex((item) => keyOf(item) === chosen);
  const choose = (index: number) => {
    const item = items[Math.max(0, Math.min(items.length - 1, index))];
    if (item === undefined) return;
    setChosen(keyOf(item));
    virtual.scrollToIndex(items.indexOf(item), { align: "auto" });
  };
  const open = () => {
    const item = items[at];
    if (item !== undefined) onOpen(item);
  };
  useKeys({ j: () => choose(at + 1), k: () => choose(at < 0 ? 0 : at - 1), Enter: open, ArrowDown: () => choose(at + 1), ArrowUp: () => choose(at - 1) });

  return (
    <div className={`virtual ${props.className ?? ""}`} role="grid" aria-label={props.label} aria-rowcount={items.length + 1} tabIndex={0}>
      <div className="virtual-head" role="rowgroup">{props.header}</div>
      <div className="virtual-body" role="rowgroup" ref={body} style={{ height: virtual.getTotalSize() }}>
        {rows.map((each) => {
          const item = items[each.index];
          if (item === undefined) return null;
          const key = keyOf(item);
          return (
            <div
              key={each.key}
              className="virtual-row"
              role="row"
              aria-rowindex={each.index + 2}
              aria-selected={key === chosen}
              style={{ height: rowHeight, transform: `translateY(${each.start - top}px)` }}
              onClick={(event) => {
                setChosen(key);
                if (!(event.target as HTMLElement).closest("a, button") && window.getSelection()?.isCollapsed !== false) onOpen(item);
              }}
            >
              {props.row(item)}
            </div>
          );
        })}
      </div>
    </div>
  );
}
