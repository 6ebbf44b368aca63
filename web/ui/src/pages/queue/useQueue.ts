import { keepPreviousData, useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useState } from "react";
import { fetchQueue, type QueueRow } from "../../api/columns";
import { useChanges } from "../../stream/useChanges";
import { parametersOf, type Filter } from "./useQueueFilter";

const pageSize = 100;

/** A list of jobs of any length: the pages on the screen are fetched, and fetched again when jobs change. */
export interface Queue {
  count: number;
  rowAt: (index: number) => QueueRow | undefined;
  onRange: (first: number, last: number) => void;
  loading: boolean;
  error: unknown;
}

/** The live jobs that a filter leaves, in the order that it has. */
export function useQueue(filter: Filter): Queue {
  const parameters = parametersOf(filter);
  const key = ["queue", parameters, filter.sort];
  const [range, setRange] = useState({ first: 0, last: 0 });
  const onRange = useCallback((first: number, last: number) => {
    setRange({ first: Math.floor(first / pageSize), last: Math.floor(last / pageSize) });
  }, []);
  const client = useQueryClient();
  useChanges((event) => event.job !== undefined, () => void client.invalidateQueries({ queryKey: key }), 1500);

  const shown = Array.from({ length: range.last - range.first + 1 }, (_, i) => range.first + i);
  const pages = useQueries({
    queries: (shown[0] === 0 ? shown : [0, ...shown]).map((page) => ({
      queryKey: [...key, page],
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        fetchQueue("/v1/jobs", parameters, { limit: pageSize, sort: filter.sort, offset: page * pageSize, signal }),
      placeholderData: page === 0 ? keepPreviousData : undefined,
    })),
  });
  const numbers = shown[0] === 0 ? shown : [0, ...shown];
  const head = pages[0];
  return {
    count: head?.data?.total ?? 0,
    rowAt: (index) => pages[numbers.indexOf(Math.floor(index / pageSize))]?.data?.rows[index % pageSize],
    onRange,
    loading: head?.isPending ?? true,
    error: pages.find((page) => page.error)?.error ?? null,
  };
}
