import { useMutation, useQueryClient } from "@tanstack/react-query";

/** A change of a service; what is shown of services is asked for again after it. */
export function useServiceChange(change: () => Promise<unknown>, done: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async () => {
      done();
      await client.invalidateQueries({ queryKey: ["services"] });
    },
  });
}
