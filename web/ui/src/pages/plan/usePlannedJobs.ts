import { useQuery, useQueryClient } from "@tanstack/react-query";
import { fetchQueue } from "../../api/columns";
import { useChanges } from "../../stream/useChanges";

const most = 500;

/** The jobs that run, and those that wait. */
export function usePlannedJobs() {
  const client = useQueryClient();
  useChanges((event) => event.job !== undefined, () => void client.invalidateQueries({ queryKey: ["plan"] }), 5000);
  return useQuery({
    queryKey: ["plan"],
    refetchInterval: 30_000,
    queryFn: async ({ signal }) => {
      const [running, waiting] = await Promise.all([
        fetchQueue("/v1/jobs", { states: ["RUNNING", "SUSPENDED"] }, { limit: most, signal }),
        fetchQueue("/v1/jobs", { states: ["PENDING"] }, { limit: most, signal }),
      ]);
      return { rows: [...running.rows, ...waiting.rows], more: running.next !== "" || waiting.next !== "" };
    },
  });
}
