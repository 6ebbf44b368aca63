import { QueryClient, keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";
import { get, text, type Answer } from "./client";
import type { QueueFilter } from "./columns";
import { Problem } from "./problem";
import { pageSize, usePages } from "./usePages";
import type { ServerInfo } from "./types";

// Everything that pages read. A page shows what it has while it asks again; an error replaces
// nothing that is still on the screen.

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1000,
      refetchOnWindowFocus: true,
      placeholderData: keepPreviousData,
      retry: (failures, error) => failures < 2 && Problem.from(error).status === 0,
    },
  },
});

/** How long a page that nothing tells of changes waits before it asks again, in milliseconds. */
const slow = 10_000;

export function useServer(): UseQueryResult<ServerInfo> {
  return useQuery({ queryKey: ["server"], queryFn: ({ signal }) => get("/v1", { signal }), staleTime: 30_000 });
}

export function useJob(job: string): UseQueryResult<Answer<"/v1/jobs/{job}", "get">> {
  return useQuery({
    queryKey: ["job", job],
    queryFn: ({ signal }) => get("/v1/jobs/{job}", { path: { job }, signal }),
    placeholderData: undefined,
  });
}

/** How many jobs a filter leaves, by state and by whose they are. */
export function useJobCounts(filter: QueueFilter, enabled: boolean) {
  return useQuery({
    queryKey: ["counts", filter],
    queryFn: ({ signal }) => get("/v1/jobs/counts", { query: filter, signal }),
    refetchInterval: 5000,
    enabled,
  });
}

export function useWhy(job: string, enabled: boolean) {
  return useQuery({
    queryKey: ["job", job, "why"],
    queryFn: ({ signal }) => get("/v1/jobs/{job}/why", { path: { job }, signal }),
    enabled,
    refetchInterval: slow,
    placeholderData: undefined,
  });
}

export function usePriority(job: string, enabled: boolean) {
  return useQuery({
    queryKey: ["job", job, "priority"],
    queryFn: ({ signal }) => get("/v1/jobs/{job}/priority", { path: { job }, signal }),
    enabled,
    placeholderData: undefined,
  });
}

export function useUsage(job: string, running: boolean) {
  return useQuery({
    queryKey: ["job", job, "usage"],
    queryFn: ({ signal }) => get("/v1/jobs/{job}/usage", { path: { job }, signal }),
    refetchInterval: running ? slow : false,
    placeholderData: undefined,
  });
}

export function useSeries(job: string, running: boolean) {
  return useQuery({
    queryKey: ["job", job, "series"],
    queryFn: ({ signal }) => get("/v1/jobs/{job}/series", { path: { job }, signal }),
    refetchInterval: running ? slow : false,
    placeholderData: undefined,
  });
}

export function useScript(job: string, enabled: boolean) {
  return useQuery({
    queryKey: ["job", job, "script"],
    queryFn: ({ signal }) => text("/v1/jobs/{job}/script", { path: { job }, signal }),
    enabled,
    staleTime: Infinity,
    placeholderData: undefined,
  });
}

export function useOverview() {
  return useQuery({ queryKey: ["overview"], queryFn: ({ signal }) => get("/v1/overview", { query: { recent: 25 }, signal }) });
}

export function usePlan(hours: number) {
  return useQuery({ queryKey: ["plan", hours], queryFn: ({ signal }) => get("/v1/plan", { query: { hours }, signal }), refetchInterval: 30_000 });
}

/** All nodes by their place, in a few bytes each. */
export function useTopology(by: "state" | "pool" | "user" | "account", match: string) {
  return useQuery({ queryKey: ["nodes", "topology", by, match], queryFn: ({ signal }) => get("/v1/topology", { query: { by, match }, signal }) });
}

/** The rows of so many nodes, with each device. */
export function useNodeRows(match: string, limit: number, enabled: boolean) {
  return useQuery({
    queryKey: ["nodes", "rows", match, limit],
    queryFn: ({ signal }) => get("/v1/node-rows", { query: { match, limit }, signal }),
    enabled,
  });
}

export function useNode(node: string) {
  return useQuery({
    queryKey: ["nodes", node],
    queryFn: ({ signal }) => get("/v1/nodes/{node}", { path: { node }, signal }),
    placeholderData: undefined,
  });
}

export function useMachines() {
  return useQuery({ queryKey: ["machines"], queryFn: ({ signal }) => get("/v1/machines", { signal }), refetchInterval: slow });
}

export function usePools() {
  return useQuery({ queryKey: ["pools"], queryFn: ({ signal }) => get("/v1/pools", { signal }), refetchInterval: slow });
}

/** What narrows and sorts a list of services or schedules. */
export interface ListFilter {
  match?: string;
  states?: string[];
  sort: string;
}

/** The services that a filter leaves, page by page. */
export function useServices(filter: ListFilter) {
  return usePages(
    ["services", "list", filter],
    async (offset, signal) => {
      const page = await get("/v1/services", { query: { ...filter, offset, limit: pageSize }, signal });
      return { rows: page.services ?? [], total: page.total };
    },
    3000,
  );
}

/** How many services there are by state, of those that a text leaves. */
export function useServiceCounts(match: string | undefined) {
  return useQuery({
    queryKey: ["services", "counts", match],
    queryFn: async ({ signal }) => (await get("/v1/services", { query: { match, limit: 1 }, signal })).states,
    refetchInterval: 3000,
  });
}

/** One service. Its full name is account/name. */
export function useService(service: string) {
  const { account, name } = serviceName(service);
  return useQuery({
    queryKey: ["services", service],
    queryFn: ({ signal }) => get("/v1/services/{name}", { path: { name }, query: { account }, signal }),
    refetchInterval: 3000,
    placeholderData: undefined,
  });
}

/** Parts of "team/chat". */
export function serviceName(full: string): { account: string; name: string } {
  const slash = full.lastIndexOf("/");
  return { account: slash < 0 ? "" : full.slice(0, slash), name: full.slice(slash + 1) };
}
