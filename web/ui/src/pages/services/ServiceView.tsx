import { useServer } from "../../api/queries";
import type { Service } from "../../api/types";
import { Card } from "../../components/Card";
import { Command } from "../../components/Command";
import { Facts } from "../../components/Facts";
import { When } from "../../components/When";
import { unix } from "../../format/time";
import { LoadCharts } from "./LoadCharts";
import { ReplicaTable } from "./ReplicaTable";
import { RevisionTable } from "./RevisionTable";
import { ServiceActions } from "./ServiceActions";

/** What cox service show prints, and the load as it goes. */
export function ServiceView({ service }: { service: Service }) {
  const you = useServer().data?.you;
  const mayChange = you !== undefined && (you.admin || you.name === service.owner);
  return (
    <>
      {mayChange && <ServiceActions service={service} />}
      <div className="cards">
        <Card title="Facts">
          <Facts facts={[
            ["address", service.url ? <a href={service.url} rel="noreferrer noopener" target="_blank">{service.url}</a> : `${service.host}${service.path ?? ""}`],
            ["owner", service.owner],
            ["replicas", `${service.replicas.ready} of ${service.replicas.want} ready${service.replicas.min === service.replicas.max ? "" : `, ${service.replicas.min} to ${service.replicas.max} by load`}`],
            ["revision", service.revision],
            ["update", rolloutText(service)],
            ["since", service.since && <When at={unix(service.since)} />],
          ]} />
          <p className="card-foot"><Command text={`cox service show ${service.name}`} /></p>
        </Card>
        {(service.reasons?.length ?? 0) > 0 && (
          <Card title="What it decided, and what it waits for">
            <ul className="service-reasons">{service.reasons?.map((reason, i) => <li key={i}>{reason}</li>)}</ul>
          </Card>
        )}
      </div>
      <LoadCharts service={service} />
      <Card title="Replicas"><ReplicaTable service={service} /></Card>
      <Card title="Revisions"><RevisionTable service={service} mayChange={mayChange} /></Card>
    </>
  );
}

function rolloutText({ rollout }: Service): string {
  if (!rollout) return "";
  return `revision ${rollout.from ? `${rollout.from} to ` : ""}${rollout.to}, ${rollout.phase}${rollout.step ? ` at ${rollout.step}` : ""}${rollout.why ? `: ${rollout.why}` : ""}`;
}
