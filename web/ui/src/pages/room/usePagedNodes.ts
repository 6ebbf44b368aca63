import { get } from "../../api/client";
import type { NodeRow } from "../../api/types";
import { pageSize, usePages, type PagedList } from "../../api/usePages";

/** The nodes that a search leaves, in an order of the API. */
export function usePagedNodes(match: string, sort: string): PagedList<NodeRow> {
  return usePages(["nodes", "list", match, sort], async (offset, signal) => {
    const page = await get("/v1/node-rows", { query: { match, sort, offset, limit: pageSize }, signal });
    return { rows: page.rows ?? [], total: page.total };
  });
}
