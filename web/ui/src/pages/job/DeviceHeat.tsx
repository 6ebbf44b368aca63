import type { JobSeries } from "../../api/types";
import { number } from "../../format/number";
import "./DeviceHeat.css";

/** A row for each device: how busy it was in each interval. A straggler is seen at once. */
export function DeviceHeat({ series }: { series: JobSeries }) {
  return (
    <div className="device-heat" tabIndex={0} role="group" aria-label="Devices">
      {series.devices?.map((device) => {
        const name = `${device.node ?? ""} ${device.index}${device.profile ? ` ${device.profile}` : ""}`.trim();
        const known = (device.busy ?? []).filter((value) => value !== null);
        const mean = known.length === 0 ? 0 : known.reduce((sum, value) => sum + value, 0) / known.length;
        return (
          <div className="device-heat-row" key={`${name} ${device.instance ?? ""}`}>
            <span>{name}</span>
            <svg viewBox={`0 0 ${series.points} 1`} preserveAspectRatio="none" role="img" aria-label={`${name}: ${number(mean)} % busy on average`}>
              {device.busy?.map((value, i) => (value === null ? null : <rect key={i} x={i} y={0} width={1.02} height={1} fillOpacity={0.08 + (0.92 * value) / 100} />))}
            </svg>
            <span className="number">{number(mean)} %</span>
          </div>
        );
      })}
    </div>
  );
}
