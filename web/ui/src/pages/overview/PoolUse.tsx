import type { Pool } from "../../api/types";
import { Badge } from "../../components/Badge";
import { Card } from "../../components/Card";
import { Meter } from "../../components/Meter";
import { count, percent } from "../../format/number";
import { poolTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { Fragment } from "react";

/** How full each pool is. */
export function PoolUse({ pools }: { pools: readonly Pool[] }) {
  const all = pools.reduce((sum, pool) => sum + (pool.devices ?? 0), 0);
  const used = pools.reduce((sum, pool) => sum + (pool.devices_used ?? 0), 0);
  return (
    <Card title="Use" aside={all > 0 ? `${used} of ${count(all, "device")} used, ${percent(used, all)}` : undefined}>
      <div className="pool-use">
        {pools.map((pool) => (
          <Fragment key={pool.name}>
            <span><Link to={addresses.pool(pool.name)}>{pool.name}</Link> {pool.state !== "up" && <Badge tone={poolTone(pool.state ?? "")}>{pool.state ?? "unknown"}</Badge>}</span>
            <Meter used={pool.devices_used ?? 0} all={pool.devices ?? 0} label={`${pool.name}: ${percent(pool.devices_used ?? 0, pool.devices ?? 0)} of its devices are used`} />
            <span className="number">{pool.devices_used ?? 0}/{pool.devices ?? 0} devices</span>
            <span className="number soft pool-jobs">{count(pool.jobs ?? 0, "job")} on {count(pool.nodes ?? 0, "node")}</span>
          </Fragment>
        ))}
      </div>
    </Card>
  );
}
