import type { Machine } from "../../api/types";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { When } from "../../components/When";
import { unix } from "../../format/time";
import { HandoverSteps } from "./HandoverSteps";

/** Machines on their way from one pool to another. */
export function HandoverTable({ machines }: { machines: readonly Machine[] }) {
  const moving = machines.filter((machine) => machine.to || machine.back);
  return (
    <Card title="Hand-overs on their way" aside={<Command text="cox machines --moving" />}>
      {moving.length === 0 ? <p className="faint">none</p> : (
        <div className="scroll-x">
          <table className="plain">
            <thead><tr><th scope="col">Machine</th><th scope="col">From</th><th scope="col">To</th><th scope="col">Step</th><th scope="col">Waits for</th><th scope="col">By</th><th scope="col">Deadline</th></tr></thead>
            <tbody>
              {moving.map((machine) => (
                <tr key={machine.name}>
                  <td>{machine.name}</td>
                  <td>{machine.pool || machine.last}</td>
                  <td>{machine.back ? "walked back" : machine.to}</td>
                  <td><HandoverSteps step={machine.step ?? ""} /></td>
                  <td className="soft">{machine.waits || machine.evidence}</td>
                  <td>{machine.by}{machine.reason && <span className="faint"> {machine.reason}</span>}</td>
                  <td>{machine.deadline && <When at={unix(machine.deadline)} />}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Card>
  );
}
