import { post } from "../../api/client";
import { serviceName } from "../../api/queries";
import { Confirm } from "../../components/Confirm";
import { useServiceChange } from "./useServiceChange";

/** Asks before a service goes back to a revision. */
export function UndoDialog({ service, to, onClose }: { service: string; to: number; onClose: () => void }) {
  const { account, name } = serviceName(service);
  const undo = useServiceChange(() => post("/v1/services/{name}/rollout", { path: { name }, query: { account }, body: { action: "undo", to } }), onClose);
  return (
    <Confirm title={`${service}: back to revision ${to}`} question="It is an update like any other: replicas are replaced as its file says." label="Go back"
      command={`cox service rollout undo ${service} --to ${to}`} mutation={undo} onClose={onClose} />
  );
}
