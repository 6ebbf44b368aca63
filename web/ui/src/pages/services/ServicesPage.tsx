import { useService, useServices } from "../../api/queries";
import type { Service } from "../../api/types";
import { Async } from "../../components/Async";
import { Badge } from "../../components/Badge";
import { Command } from "../../components/Command";
import { Empty } from "../../components/Empty";
import { Page } from "../../components/Page";
import { VirtualList } from "../../components/VirtualList";
import { number } from "../../format/number";
import { shortWait } from "../../format/time";
import { serviceTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { navigate, useQuery } from "../../router/location";
import { useKeys } from "../../shell/keys";
import { ServiceView } from "./ServiceView";
import "./ServicesPage.css";

/** The services, or the one that the address names. */
export default function ServicesPage() {
  const service = useQuery().get("service");
  return service === null ? <ServiceListPage /> : <ServicePage name={service} key={service} />;
}

function ServiceListPage() {
  const services = useServices();
  return (
    <Page title="Services" aside={<Command text="cox service list" />}>
      <Async query={services}>
        {({ services: list }) =>
          list?.length ? <ServiceList services={list} /> : (
            <Empty>
              <p>No service runs. A file with <code>kind: service</code> starts one:</p>
              <p><Command text="cox submit service.yaml" /></p>
            </Empty>
          )
        }
      </Async>
    </Page>
  );
}

const headers: [className: string, text: string][] = [
  ["", "State"], ["", "Service"], ["number", "Ready"], ["number service-wide", "Revision"], ["number service-wide", "Requests/s"], ["number service-wide", "p95"], ["number service-wide", "Failed/s"], ["service-wide", "Owner"], ["service-wide", "Address, or why"],
];

function ServiceList({ services }: { services: readonly Service[] }) {
  return (
    <VirtualList
      label="Services"
      count={services.length}
      itemAt={(index) => services[index]}
      keyOf={(service) => service.name}
      rowHeight={36}
      header={<div className="service-row service-header" role="row">{headers.map(([name, text]) => <span role="columnheader" className={name} key={text}>{text}</span>)}</div>}
      row={(service) => (
        <div className="service-row" role="presentation">
          <span role="gridcell"><Badge tone={serviceTone(service.state)}>{service.state}</Badge></span>
          <span role="gridcell">{service.name}</span>
          <span role="gridcell" className="number">{service.replicas.ready}/{service.replicas.want}</span>
          <span role="gridcell" className="number service-wide">{service.revision}</span>
          <span role="gridcell" className="number service-wide">{service.load ? number(service.load.requests_per_second) : "unknown"}</span>
          <span role="gridcell" className="number service-wide">{service.load?.latency ? shortWait(service.load.latency.p95) : "unknown"}</span>
          <span role="gridcell" className="number service-wide">{service.load ? number(service.load.failed_per_second) : "unknown"}</span>
          <span role="gridcell" className="service-wide">{service.owner}</span>
          <span role="gridcell" className="service-wide soft">{service.state === "ready" ? service.url || service.host : (service.reasons?.[0] ?? service.url)}</span>
        </div>
      )}
      onOpen={(service) => navigate(addresses.service(service.name))}
    />
  );
}

function ServicePage({ name }: { name: string }) {
  const service = useService(name);
  useKeys({ Escape: () => navigate(addresses.services) });
  return (
    <Page title={`Service ${name}`} heading={<>{name} {service.data && <Badge tone={serviceTone(service.data.state)}>{service.data.state}</Badge>}</>}>
      <Async query={service}>{(data) => <ServiceView service={data} />}</Async>
    </Page>
  );
}
