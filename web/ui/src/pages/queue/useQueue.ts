import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { fetchQueue, type QueueRow } from "../../api/columns";
import { useChanges } from "../../stream/useChanges";
import { parametersOf, type Filter } from "./useQueueFilter";

const pageSize = 200;

export interface Queue {
  rows: QueueRow[];
  loading: boolean;
  error: unknown;
  hasMore: boolean;
  more: () => void;
}

/** The rows that a filter leaves, page by page, kept up to date by the stream. */
export function useQueue(filter: Filter): Queue {
  const route = filter.view === "ended" ? "/v1/history" : "/v1/jobs";
  const parameters = parametersOf(filter);
  const key = ["queue", route, parameters];
  const client = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => fetchQueue(route, parameters, { limit: pageSize, cursor: pageParam, signal }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next || undefined,
  });
  const pages = query.data?.pages ?? [];
  // A long list is fetched again less often: what changes is mostly at its head.
  useChanges((event) => event.job !== undefined, () => void client.invalidateQueries({ queryKey: key }), 1000 * Math.max(1, pages.length));
  return {
    rows: pages.flatMap((page) => page.rows),
    loading: query.isPending || query.isPlaceholderData,
    error: query.error,
    hasMore: query.hasNextPage,
    more: () => {
      if (query.hasNextPage && !query.isFetchingNextPage) void query.fetchNextPage();
    },
  };
}
