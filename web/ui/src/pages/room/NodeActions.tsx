import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { post } from "../../api/client";
import type { Node } from "../../api/types";
import { Button } from "../../components/Button";
import { Confirm } from "../../components/Confirm";

/** What an administrator does with a node. */
export function NodeActions({ node }: { node: Node }) {
  const [verb, setVerb] = useState<"drain" | "resume">();
  const [reason, setReason] = useState("");
  const client = useQueryClient();
  const change = useMutation({
    mutationFn: async () => {
      if (verb) await post("/v1/nodes/change", { body: { verb, nodes: [node.name], reason: verb === "drain" ? reason : undefined } });
    },
    onSuccess: async () => {
      setVerb(undefined);
      setReason("");
      await client.invalidateQueries({ queryKey: ["nodes"] });
    },
  });
  return (
    <div className="node-actions">
      {node.state === "up" ? <Button onPress={() => setVerb("drain")}>Drain</Button> : <Button onPress={() => setVerb("resume")}>Resume</Button>}
      {verb === "drain" && (
        <Confirm title={`Drain ${node.name}`} question="No new job starts there; running jobs continue." label="Drain" disabled={reason.trim() === ""}
          command={`cox node drain ${node.name} --reason ${JSON.stringify(reason || "…")}`} mutation={change} onClose={() => setVerb(undefined)}>
          <div className="dialog-field">
            <label htmlFor="drain-reason">Reason, which everybody can see</label>
            <input id="drain-reason" value={reason} autoFocus onChange={(event) => setReason(event.target.value)} />
          </div>
        </Confirm>
      )}
      {verb === "resume" && (
        <Confirm title={`Resume ${node.name}`} question="New jobs may start there again." label="Resume" command={`cox node resume ${node.name}`} mutation={change} onClose={() => setVerb(undefined)} />
      )}
    </div>
  );
}
