import { useMutation, useQueryClient } from "@tanstack/react-query";
import { post } from "../../../api/client";
import { Problem } from "../../../api/problem";
import type { Job } from "../../../api/types";
import { Confirm } from "../../../components/Confirm";
import type { JobAction } from "./jobActions";

interface ActionDialogProps {
  job: Job;
  action: JobAction;
  onClose: () => void;
}

/** Asks before a job is changed, and shows the command that does the same. */
export function ActionDialog({ job, action, onClose }: ActionDialogProps) {
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: async () => {
      const done = await post("/v1/jobs/change", { body: { verb: action.verb, select: { ids: [job.name] } } });
      const error = done.errors?.[0]?.error;
      if (error) throw new Problem(error);
      const same = done.unchanged?.[0]?.why;
      if (same) throw new Problem({ status: 409, title: "nothing changed", detail: same });
    },
    onSuccess: async () => {
      onClose();
      await client.invalidateQueries({ queryKey: ["job", job.name] });
    },
  });
  return (
    <Confirm
      title={`${action.label}: job ${job.name} ${job.spec.name}`}
      question={action.question}
      command={action.command}
      label={action.label}
      danger={action.danger}
      mutation={change}
      onClose={onClose}
    />
  );
}
