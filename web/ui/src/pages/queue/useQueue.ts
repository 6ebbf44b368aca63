import { useQueryClient } from "@tanstack/react-query";
import { fetchQueue, type QueueRow } from "../../api/columns";
import { pageSize, usePages, type PagedList } from "../../api/usePages";
import { useChanges } from "../../stream/useChanges";
import { parametersOf, type Filter } from "./useQueueFilter";

export type Queue = PagedList<QueueRow>;

/** The live jobs that a filter leaves, in the order that it has. */
export function useQueue(filter: Filter): Queue {
  const parameters = parametersOf(filter);
  const key = ["queue", parameters, filter.sort];
  const client = useQueryClient();
  const pages = usePages(key, (offset, signal) => fetchQueue("/v1/jobs", parameters, { limit: pageSize, sort: filter.sort, offset, signal }));
  useChanges(pages.shown().map((row) => row.name), () => void client.invalidateQueries({ queryKey: key }), { soon: 1500, later: 5000 });
  return pages;
}
