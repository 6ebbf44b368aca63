import { useState, type FormEvent } from "react";
import { useJobCounts, useServer } from "../../api/queries";
import type { JobCounts } from "../../api/types";
import { Segments } from "../../components/Segments";
import { number } from "../../format/number";
import { fields, parametersOf, parseTyped, setField, type Field, type Filter, type View } from "./useQueueFilter";
import "./FilterBar.css";

const viewLabels: [View, string][] = [["live", "Live"], ["running", "Running"], ["waiting", "Waiting"], ["ended", "Ended"]];

// Fields by which stored jobs cannot be found.
const notStored: readonly Field[] = ["pool", "reason"];

/** What narrows the queue. Every choice is a part of the address. */
export function FilterBar({ filter }: { filter: Filter }) {
  const [typed, setTyped] = useState("");
  const you = useServer().data?.you.name;
  const counts = useJobCounts(parametersOf({ ...filter, view: "live" }), filter.view !== "ended").data;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const parsed = parseTyped(typed);
    if (parsed === undefined) return;
    setField(...parsed);
    setTyped("");
  };
  return (
    <div className="filter-bar">
      <Segments label="Jobs" options={viewLabels.map(([view, label]) => [view, label + countOf(view, counts)] as const)} value={filter.view} onChange={(view) => setField("view", view)} />
      {you !== undefined && (
        <button type="button" className="filter-mine" aria-pressed={filter.values.user === you} onClick={() => setField("user", filter.values.user === you ? "" : you)}>
          Mine
        </button>
      )}
      <form onSubmit={submit} role="search">
        <input
          data-search
          type="search"
          size={22}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          placeholder="Find, or user:anna"
          aria-label="Find jobs by a text, or filter by a field, for example user:anna; Enter adds it"
          list="filter-fields"
        />
        <datalist id="filter-fields">{suggestions(counts).map((each) => <option key={each} value={each} />)}</datalist>
      </form>
      {fields.map((field) => {
        const value = filter.values[field];
        return value === undefined ? null : (
          <button type="button" key={field} className="filter-chip" onClick={() => setField(field, "")} aria-label={`Remove the filter ${field} ${value}`}>
            {field}: <b>{value}</b>{filter.view === "ended" && notStored.includes(field) ? " (not for ended jobs)" : ""} <span aria-hidden="true">×</span>
          </button>
        );
      })}
    </div>
  );
}

function countOf(view: View, counts: JobCounts | undefined): string {
  if (!counts || view === "live" || view === "ended") return "";
  const sum = view === "waiting" ? (counts.states.PENDING ?? 0) : (counts.states.RUNNING ?? 0) + (counts.states.SUSPENDED ?? 0);
  return ` ${number(sum)}`;
}

/** Fields, and the values of them that there are, those with the most jobs first. */
function suggestions(counts: JobCounts | undefined): string[] {
  const values = (field: string, of: Record<string, number> | undefined) =>
    Object.entries(of ?? {}).sort((a, b) => b[1] - a[1]).slice(0, 20).map(([name]) => `${field}:${name}`);
  return [
    ...fields.filter((field) => field !== "find").map((field) => `${field}:`),
    ...values("user", counts?.users), ...values("account", counts?.accounts), ...values("pool", counts?.pools),
    ...values("partition", counts?.partitions), ...values("reason", counts?.reasons),
  ];
}
