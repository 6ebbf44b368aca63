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
  useChanges((event) => event.job !== undefined, () => void client.invalidateQueries({ queryKey: key }), 1500);
  return usePages(key, (offset, signal) => fetchQueue("/v1/jobs", parameters, { limit: pageSize, sort: filter.sort, offset, signal }));
}
