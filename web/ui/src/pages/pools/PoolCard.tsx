import { useMutation } from "@tanstack/react-query";
import { post } from "../../api/client";
import { useServer } from "../../api/queries";
import type { Pool } from "../../api/types";
import { Badge } from "../../components/Badge";
import { Button } from "../../components/Button";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { Facts } from "../../components/Facts";
import { Meter } from "../../components/Meter";
import { ProblemView } from "../../components/Problem";
import { When } from "../../components/When";
import { count } from "../../format/number";
import { unix } from "../../format/time";
import { poolTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { Link } from "../../router/Link";
import { Findings } from "./Findings";
import "./PoolCard.css";

/** What cox pool show prints; an administrator looks at the engine from here. */
export function PoolCard({ pool, chosen }: { pool: Pool; chosen: boolean }) {
  const admin = useServer().data?.you.admin ?? false;
  const check = useMutation({ mutationFn: () => post("/v1/pools/{name}/check", { path: { name: pool.name } }) });
  const devices = pool.devices ?? 0;
  const used = pool.devices_used ?? 0;
  return (
    <div className={chosen ? "pool-card pool-chosen" : "pool-card"}>
      <Card title={pool.name} aside={<Badge tone={poolTone(pool.state ?? "")}>{pool.state ?? "unknown"}</Badge>}>
        {devices > 0 && <Meter used={used} all={devices} label={`${used} of ${devices} devices are used`} />}
        <Facts facts={[
          ["why", pool.why],
          ["engine", `${pool.engine} ${pool.version ?? ""}`],
          ["nodes", <Link to={`${addresses.room}?${new URLSearchParams({ find: pool.name })}`} key="nodes">{count(pool.nodes ?? 0, "node")}</Link>],
          ["devices", devices > 0 && `${used} of ${devices} used`],
          ["jobs", pool.jobs],
          ["gangs", pool.gang || "its engine has not answered yet"],
          ["can", pool.abilities?.join(", ")],
          ["default", pool.default && "jobs that name no pool go there"],
          ["heard", pool.heard && <When at={unix(pool.heard)} />],
          ["added", pool.added && <><When at={unix(pool.added)} /> by {pool.by}</>],
          ...(pool.notes ?? []).map((note, i): [string, string] => [i === 0 ? "notes" : " ".repeat(i), note]),
        ]} />
        <div className="pool-foot">
          <Command text={`cox pool ${admin ? "check" : "show"} ${pool.name}`} />
          {admin && <Button isDisabled={check.isPending} onPress={() => check.mutate()}>{check.isPending ? "Looking …" : "Look at it now"}</Button>}
        </div>
        {check.error && <ProblemView error={check.error} />}
        {check.data && <Findings findings={check.data.findings ?? []} />}
      </Card>
    </div>
  );
}
