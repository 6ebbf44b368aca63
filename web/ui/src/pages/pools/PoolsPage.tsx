import { useMachines, usePools } from "../../api/queries";
import { Async } from "../../components/Async";
import { Command } from "../../components/Command";
import { Page } from "../../components/Page";
import { useQuery } from "../../router/location";
import { HandoverTable } from "./HandoverTable";
import { PoolCard } from "./PoolCard";

/** The pools with their engines: whether these answer, what is missing, and machines on their way between them. */
export default function PoolsPage() {
  const pools = usePools();
  const machines = useMachines();
  const chosen = useQuery().get("pool");
  return (
    <Page title="Pools" aside={<Command text="cox pool list" />}>
      <Async query={pools}>
        {({ pools: list }) => (
          <div className="cards">
            {[...(list ?? [])].sort((a, b) => Number(b.name === chosen) - Number(a.name === chosen)).map((pool) => <PoolCard pool={pool} key={pool.name} chosen={pool.name === chosen} />)}
          </div>
        )}
      </Async>
      <Async query={machines}>{({ machines: list }) => <HandoverTable machines={list ?? []} />}</Async>
    </Page>
  );
}
