import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { address, send } from "../../api/client";
import type { Holders } from "./paint";

const none: Holders = new Map();

/** Users and accounts of the jobs that hold something, as far as the reader may see them. */
export function useHolders(enabled: boolean): Holders {
  const query = useQuery({
    queryKey: ["holders"],
    enabled,
    refetchInterval: 10_000,
    queryFn: async ({ signal }) => {
      const url = address("/v1/jobs", {}, { states: ["RUNNING", "SUSPENDED"], columns: ["name", "user", "account"] });
      return (await send(url, { signal })).text();
    },
  });
  return useMemo(() => {
    if (query.data === undefined) return none;
    return new Map(query.data.split("\n").filter(Boolean).map((line) => {
      const [name = "", user = "", account = ""] = line.split("\t");
      return [name, { user, account }];
    }));
  }, [query.data]);
}
