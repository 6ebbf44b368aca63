import { keepPreviousData, useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { fetchQueue } from "../../api/columns";
import { useChanges } from "../../stream/useChanges";
import type { Queue } from "./useQueue";
import { parametersOf, type Filter } from "./useQueueFilter";

const pageSize = 100;

/** The jobs that ended, newest first. The API does not count them: more come as the reader scrolls. */
export function useHistory(filter: Filter): Queue & { hasMore: boolean } {
  const { reasons: _, pools: __, ...parameters } = parametersOf(filter);
  const key = ["history", parameters];
  const client = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => fetchQueue("/v1/history", parameters, { limit: pageSize, cursor: pageParam, signal }),
    initialPageParam: "",
    getNextPageParam: (last) => last.next || undefined,
    placeholderData: keepPreviousData,
  });
  const pages = query.data?.pages ?? [];
  useChanges([], () => void client.invalidateQueries({ queryKey: key }), { later: 5000 * Math.max(1, pages.length) });
  const rows = pages.flatMap((page) => page.rows);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  const onRange = useCallback((_first: number, last: number) => {
    if (last >= rows.length - 1 && hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [rows.length, hasNextPage, isFetchingNextPage, fetchNextPage]);
  return { count: rows.length, rowAt: (index) => rows[index], shown: () => rows, onRange, loading: query.isPending, error: query.error, hasMore: hasNextPage };
}
