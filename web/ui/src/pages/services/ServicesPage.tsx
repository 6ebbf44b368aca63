import { useService, useServiceCounts, useServices, type ListFilter } from "../../api/queries";
import type { Service } from "../../api/types";
import type { PagedList } from "../../api/usePages";
import { Async } from "../../components/Async";
import { Badge } from "../../components/Badge";
import { Command } from "../../components/Command";
import { Empty } from "../../components/Empty";
import { Page } from "../../components/Page";
import { ProblemView } from "../../components/Problem";
import { SortHeader } from "../../components/SortHeader";
import { SortSelect } from "../../components/SortSelect";
import { VirtualList } from "../../components/VirtualList";
import { count, number, smallRate } from "../../format/number";
import { shortWait } from "../../format/time";
import { serviceTone } from "../../format/tone";
import { addresses } from "../../router/addresses";
import { navigate, setQuery, useQuery } from "../../router/location";
import { useKeys } from "../../shell/keys";
import { ServiceView } from "./ServiceView";
import "../queue/FilterBar.css";
import "./ServicesPage.css";

/** The services, or the one that the address names. */
export default function ServicesPage() {
  const service = useQuery().get("service");
  return service === null ? <ServiceListPage /> : <ServicePage name={service} key={service} />;
}

function ServiceListPage() {
  const query = useQuery();
  const filter: ListFilter = { sort: query.get("sort") ?? "name" };
  const match = query.get("find");
  const state = query.get("state");
  if (match) filter.match = match;
  if (state) filter.states = [state];
  const services = useServices(filter);
  return (
    <Page title="Services" aside={<ServiceFilter filter={filter} />}>
      {services.error ? <ProblemView error={services.error} /> : null}
      {services.count > 0 && <SortSelect columns={columns} sort={filter.sort} />}
      {services.count > 0 && <ServiceList services={services} filter={filter} />}
      {services.count === 0 && !services.loading && !services.error && (filter.match || filter.states ? <Empty><p>No service fits the filter.</p></Empty> : <NoService />)}
      <p className="card-foot">{services.count > 0 && <span className="faint">{count(services.count, "service")} </span>}<Command text="cox service list" /></p>
    </Page>
  );
}

function NoService() {
  return (
    <Empty>
      <p>No service runs. A file with <code>kind: service</code> starts one:</p>
      <p><Command text="cox submit service.yaml" /></p>
    </Empty>
  );
}

/** What narrows the list: a part of the address. */
function ServiceFilter({ filter }: { filter: ListFilter }) {
  const counts = useServiceCounts(filter.match).data ?? {};
  const chosen = filter.states?.[0];
  const states = [...new Set([...Object.keys(counts), ...(chosen ? [chosen] : [])])].sort();
  return (
    <div className="buttons">
      {states.map((state) => (
        <button type="button" className="filter-chip" key={state} aria-pressed={state === chosen} onClick={() => setQuery({ state: state === chosen ? "" : state })}>
          {state} {number(counts[state] ?? 0)}
        </button>
      ))}
      <input data-search type="search" size={18} value={filter.match ?? ""} onChange={(event) => setQuery({ find: event.target.value })} placeholder="Name or owner" aria-label="Find services by their names or owners" />
    </div>
  );
}

const columns: { text: string; className: string; by?: string; first?: "down" }[] = [
  { text: "State", className: "", by: "state" },
  { text: "Service", className: "", by: "name" },
  { text: "Ready", className: "number", by: "ready", first: "down" },
  { text: "Revision", className: "number service-wide", by: "revision", first: "down" },
  { text: "Requests/s", className: "number service-wide", by: "requests_per_second", first: "down" },
  { text: "p95", className: "number service-wide", by: "p95", first: "down" },
  { text: "Failed/s", className: "number service-wide", by: "failed_per_second", first: "down" },
  { text: "Owner", className: "service-wide", by: "owner" },
  { text: "Address, or why", className: "service-wide" },
];

function ServiceList({ services, filter }: { services: PagedList<Service>; filter: ListFilter }) {
  return (
    <VirtualList
      key={JSON.stringify(filter)}
      label="Services"
      count={services.count}
      itemAt={services.rowAt}
      onRange={services.onRange}
      keyOf={(service) => service.name}
      rowHeight={36}
      header={<div className="service-row service-header" role="row">{columns.map((column) => <SortHeader key={column.text} sort={filter.sort} {...column} />)}</div>}
      row={(service) => (
        <div className="service-row" role="presentation">
          <span role="gridcell"><Badge tone={serviceTone(service.state)}>{service.state}</Badge></span>
          <span role="gridcell">{service.name}</span>
          <span role="gridcell" className="number">{service.replicas.ready}/{service.replicas.want}</span>
          <span role="gridcell" className="number service-wide">{service.revision}</span>
          <span role="gridcell" className="number service-wide">{service.load ? number(service.load.requests_per_second) : "unknown"}</span>
          <span role="gridcell" className="number service-wide">{service.load?.latency ? shortWait(service.load.latency.p95) : "unknown"}</span>
          <span role="gridcell" className="number service-wide">{service.load ? smallRate(service.load.failed_per_second) : "unknown"}</span>
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
