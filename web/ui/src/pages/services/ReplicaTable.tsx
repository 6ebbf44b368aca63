import type { Service } from "../../api/types";
import { Badge } from "../../components/Badge";
import { jobTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";

export function ReplicaTable({ service }: { service: Service }) {
  return (
    <div className="scroll-x">
      <table className="plain">
        <thead><tr><th scope="col">Replica</th><th scope="col">State</th><th scope="col" className="number">Revision</th><th scope="col">Job</th><th scope="col">Node</th><th scope="col">Address</th><th scope="col">Why</th></tr></thead>
        <tbody>
          {service.parts?.map((part) => (
            <tr key={`${part.index}.${part.revision}.${part.try}`}>
              <td>.{part.index}</td>
              <td>{part.ready ? <Badge tone="good">ready</Badge> : <Badge tone={jobTone(part.state)}>{part.state}</Badge>}</td>
              <td className="number">{part.revision}</td>
              <td>{part.job ? <Link to={addresses.job(String(part.job))}>{part.job}</Link> : ""} {part.job ? <Link to={addresses.log(String(part.job), "")}>log</Link> : ""}</td>
              <td>{part.node && <Link to={addresses.node(part.node)}>{part.node}</Link>}</td>
              <td>{part.address}</td>
              <td className="soft">{part.why}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {!service.parts?.length && <p className="faint">no replica exists now</p>}
    </div>
  );
}
