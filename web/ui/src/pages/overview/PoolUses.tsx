import { Fragment } from "react";
import type { PoolUse } from "../../api/types";
import { Card } from "../../components/Card";
import { Meter } from "../../components/Meter";
import { count, number, percent } from "../../format/number";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";

/** How full each pool is: its devices by type, or its CPUs where it has none. */
export function PoolUses({ uses }: { uses: readonly PoolUse[] }) {
  const devices = uses.flatMap((use) => use.devices ?? []);
  const all = devices.reduce((sum, each) => sum + each.all, 0);
  const used = devices.reduce((sum, each) => sum + each.used, 0);
  return (
    <Card title="Use" aside={all > 0 ? `${number(used)} of ${count(all, "device")} used, ${percent(used, all)}` : undefined}>
      <div className="pool-use">
        {uses.map((use) => <PoolRows use={use} key={use.pool} />)}
      </div>
    </Card>
  );
}

function PoolRows({ use }: { use: PoolUse }) {
  const rows = use.devices?.length
    ? use.devices.map((each) => ({ name: each.type || each.kind, used: each.used, all: each.all, more: shut(each.foreign, each.fenced, each.down) }))
    : [{ name: "CPUs", used: use.cpus_used, all: use.cpus, more: "" }];
  return rows.map((row, i) => (
    <Fragment key={row.name}>
      <span>{i === 0 && <Link to={addresses.pool(use.pool)}>{use.pool}</Link>}</span>
      <Meter used={row.used} all={row.all} label={`${use.pool}: ${percent(row.used, row.all)} of ${row.name} used`} />
      <span className="number">{number(row.used)}/{number(row.all)} {row.name}</span>
      <span className="number soft pool-jobs">{row.more || (i === 0 ? `${use.up} of ${count(use.nodes, "node")} up` : "")}</span>
    </Fragment>
  ));
}

function shut(foreign = 0, fenced = 0, down = 0): string {
  return [foreign > 0 && `${foreign} used by others`, fenced > 0 && `${fenced} fenced`, down > 0 && `${down} down`].filter(Boolean).join(", ");
}
