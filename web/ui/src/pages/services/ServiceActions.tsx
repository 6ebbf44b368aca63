import { useState } from "react";
import { post } from "../../api/client";
import { serviceName } from "../../api/queries";
import type { Service } from "../../api/types";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";
import { useServiceChange } from "./useServiceChange";

type Action = "scale" | "pause" | "resume";

/** What the owner of a service does with it. */
export function ServiceActions({ service }: { service: Service }) {
  const [action, setAction] = useState<Action>();
  const [replicas, setReplicas] = useState(service.replicas.want);
  const { account, name } = serviceName(service.name);
  const at = { path: { name }, query: { account } };
  const close = () => setAction(undefined);
  const scale = useServiceChange(() => post("/v1/services/{name}/scale", { ...at, body: { replicas } }), close);
  const rollout = useServiceChange(() => post("/v1/services/{name}/rollout", { ...at, body: { action: action === "pause" ? "pause" : "resume" } }), close);
  const phase = service.rollout?.phase;
  const { min, max } = service.replicas;
  return (
    <div className="buttons">
      <Button onPress={() => { setReplicas(service.replicas.want); setAction("scale"); }}>Scale</Button>
      {phase === "rolling" && <Button onPress={() => setAction("pause")}>Pause the update</Button>}
      {(phase === "paused" || phase === "halted") && <Button onPress={() => setAction("resume")}>Let the update go on</Button>}
      {action === "scale" && (
        <Confirm title={`Scale ${service.name}`} question={min === max ? "So many replicas are kept running." : `Its file allows ${min} to ${max}.`} label="Scale"
          command={`cox service scale ${service.name} ${replicas}`} mutation={scale} onClose={close}>
          <div className="dialog-field">
            <label htmlFor="replicas">Replicas</label>
            <input id="replicas" type="number" min={0} value={replicas} autoFocus onChange={(event) => setReplicas(Math.max(0, Number(event.target.value)))} />
          </div>
        </Confirm>
      )}
      {action === "pause" && <Confirm title="Pause the update" question="It stays where it is until it is resumed." label="Pause" command={`cox service rollout pause ${service.name}`} mutation={rollout} onClose={close} />}
      {action === "resume" && <Confirm title="Let the update go on" question="It continues from where it is." label="Go on" command={`cox service rollout resume ${service.name}`} mutation={rollout} onClose={close} />}
    </div>
  );
}
