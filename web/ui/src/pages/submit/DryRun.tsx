import type { Submitted } from "../../api/types";
import { Card } from "../../components/Card";
import { Facts } from "../../components/Facts";
import { When } from "../../components/When";
import { hostList } from "../../format/hosts";
import { count } from "../../format/number";
import { unix } from "../../format/time";

/** What a submission would do. Nothing was kept. */
export function DryRun({ result }: { result: Submitted }) {
  const { estimate } = result;
  return (
    <Card title="What it would do">
      <Facts facts={[
        ["tasks", result.tasks && count(result.tasks, "task")],
        ["pool", result.pool && `${result.pool}${result.chosen ? `: ${result.chosen.why}` : ""}`],
        ["start", estimate?.start && <When at={unix(estimate.start)} />],
        ["nodes", estimate?.nodes?.length ? hostList(estimate.nodes) : ""],
        ["CPUs", estimate?.cpus],
        ["waits for", estimate?.reasons?.length ? estimate.reasons.map((reason) => reason.code).join(", ") : ""],
        ["service", result.service && `${result.service.name}, revision ${result.service.revision}${result.service.changed ? "" : ": the same as the one that serves"}`],
        ["schedule", result.schedule && <>{result.schedule.name}, next <When at={unix(result.schedule.next)} /></>],
      ]} />
      {result.warnings?.map((warning, i) => (
        <p className="dry-warning" key={i}>{warning.file}{warning.line ? `:${warning.line}` : ""} {warning.option} {warning.message}</p>
      ))}
      {!result.warnings?.length && <p className="faint card-foot">no warnings</p>}
    </Card>
  );
}
