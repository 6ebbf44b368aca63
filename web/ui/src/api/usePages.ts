import { keepPreviousData, useQueries } from "@tanstack/react-query";
import { useCallback, useState } from "react";

/** A list of any length: its pages on the screen are fetched. */
export interface PagedList<T> {
  count: number; // rows of all pages
  rowAt: (index: number) => T | undefined; // undefined: it is on its way
  onRange: (first: number, last: number) => void; // rows that are on the screen
  shown: () => T[]; // the rows of the pages on the screen
  loading: boolean;
  error: unknown;
}

interface Page<T> {
  rows: T[];
  total: number;
}

export const pageSize = 100;

/** Fetches the first page, which has the number of rows, and the pages on the screen; anew each so many milliseconds. */
export function usePages<T>(key: readonly unknown[], fetchPage: (offset: number, signal: AbortSignal) => Promise<Page<T>>, again?: number): PagedList<T> {
  const [range, setRange] = useState({ first: 0, last: 0 });
  const onRange = useCallback((first: number, last: number) => {
    setRange({ first: Math.floor(first / pageSize), last: Math.floor(last / pageSize) });
  }, []);
  const numbers = [...new Set([0, ...Array.from({ length: range.last - range.first + 1 }, (_, i) => range.first + i)])];
  const pages = useQueries({
    queries: numbers.map((page) => ({
      queryKey: [...key, page],
      queryFn: ({ signal }: { signal: AbortSignal }) => fetchPage(page * pageSize, signal),
      refetchInterval: again ?? (false as const),
      placeholderData: page === 0 ? keepPreviousData : undefined,
    })),
  });
  return {
    count: pages[0]?.data?.total ?? 0,
    rowAt: (index) => pages[numbers.indexOf(Math.floor(index / pageSize))]?.data?.rows[index % pageSize],
    onRange,
    shown: () => pages.flatMap((page) => page.data?.rows ?? []),
    loading: pages[0]?.isPending ?? true,
    error: pages.find((page) => page.error)?.error ?? null,
  };
}
