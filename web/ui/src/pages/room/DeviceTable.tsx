import type { Device } from "../../api/types";
import { bytes } from "../../format/number";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";

/** The devices of a node, and which job has each. */
export function DeviceTable({ devices }: { devices: readonly Device[] }) {
  return (
    <div className="scroll-x device-table">
      <table className="plain">
        <thead><tr><th scope="col">Device</th><th scope="col">Type</th><th scope="col">Used by</th></tr></thead>
        <tbody>
          {devices.map((device) => (
            <tr key={`${device.kind}${device.index}`}>
              <td>{device.kind} {device.index}</td>
              <td>{device.type}{device.memory ? ` ${bytes(device.memory)}` : ""}{device.profile && ` ${device.profile}`}</td>
              <td>
                {device.jobs?.map((job, i) => <span key={job}>{i > 0 && ", "}<Link to={addresses.job(job)}>{job}</Link></span>)}
                {device.foreign ? `${device.jobs?.length ? ", " : ""}processes of others` : ""}
                {device.fenced && <span className="place-down"> {device.fenced}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
