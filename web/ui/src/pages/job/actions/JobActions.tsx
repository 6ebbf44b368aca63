import { useState } from "react";
import { useServer } from "../../../api/queries";
import type { Job } from "../../../api/types";
import { Button } from "../../../components/Button";
import { ActionDialog } from "./ActionDialog";
import { jobActions, type JobAction } from "./jobActions";

/** The actions that the reader may do with a job. */
export function JobActions({ job }: { job: Job }) {
  const server = useServer();
  const [chosen, setChosen] = useState<JobAction>();
  if (!server.data) return null;
  return (
    <>
      {jobActions(job, server.data.you).map((action) => (
        <Button key={action.verb} look={action.danger ? "danger" : "plain"} onPress={() => setChosen(action)}>{action.label}</Button>
      ))}
      {chosen && <ActionDialog job={job} action={chosen} onClose={() => setChosen(undefined)} />}
    </>
  );
}
