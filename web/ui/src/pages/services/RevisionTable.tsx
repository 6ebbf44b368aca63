import { useState } from "react";
import type { Service } from "../../api/types";
import { Button } from "../../components/Button";
import { When } from "../../components/When";
import { unix } from "../../format/time";
import { UndoDialog } from "./UndoDialog";

/** The revisions that are kept, newest first, with their files. */
export function RevisionTable({ service, mayChange }: { service: Service; mayChange: boolean }) {
  const [undo, setUndo] = useState<number>();
  return (
    <div className="scroll-x">
      <table className="plain">
        <thead><tr><th scope="col">Revision</th><th scope="col">Made</th><th scope="col">By</th><th scope="col">Note</th><th scope="col"><span className="hidden-text">Actions</span></th></tr></thead>
        <tbody>
          {service.revisions?.map((revision) => (
            <tr key={revision.number}>
              <td>{revision.number}{revision.number === service.revision && <span className="faint"> serves</span>}</td>
              <td><When at={unix(revision.at)} /></td>
              <td>{revision.by}</td>
              <td>
                {revision.note}
                {revision.text && <details><summary>file</summary><pre className="revision-file">{revision.text}</pre></details>}
              </td>
              <td>{mayChange && revision.number !== service.revision && <Button onPress={() => setUndo(revision.number)}>Go back to it</Button>}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {undo !== undefined && <UndoDialog service={service.name} to={undo} onClose={() => setUndo(undefined)} />}
    </div>
  );
}
