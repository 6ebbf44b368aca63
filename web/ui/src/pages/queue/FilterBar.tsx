import { useState, type FormEvent } from "react";
import { useServer } from "../../api/queries";
import { Segments } from "../../components/Segments";
import { fields, parseTyped, setField, type Filter, type View } from "./useQueueFilter";
import "./FilterBar.css";

const viewLabels: [View, string][] = [["live", "Live"], ["running", "Running"], ["waiting", "Waiting"], ["ended", "Ended"]];

/** What narrows the queue. Every choice is a part of the address. */
export function FilterBar({ filter }: { filter: Filter }) {
  const [typed, setTyped] = useState("");
  const you = useServer().data?.you.name;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const parsed = parseTyped(typed);
    if (parsed === undefined) return;
    setField(...parsed);
    setTyped("");
  };
  return (
    <div className="filter-bar">
      <Segments label="Jobs" options={viewLabels} value={filter.view} onChange={(view) => setField("view", view)} />
      {you !== undefined && (
        <button type="button" className="filter-mine" aria-pressed={filter.values.user === you} onClick={() => setField("user", filter.values.user === you ? "" : you)}>
          Mine
        </button>
      )}
      <form onSubmit={submit} role="search">
        <input
          data-search
          type="search"
          size={26}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          placeholder="user:anna, node:gpu1, a name …"
          aria-label="Filter, for example user:anna; Enter adds it"
          list="filter-fields"
        />
        <datalist id="filter-fields">
          {fields.map((field) => <option key={field} value={`${field}:`} />)}
        </datalist>
      </form>
      {fields.map((field) => {
        const value = filter.values[field];
        return value === undefined ? null : (
          <button type="button" key={field} className="filter-chip" onClick={() => setField(field, "")} aria-label={`Remove the filter ${field} ${value}`}>
            {field}: <b>{value}</b> <span aria-hidden="true">×</span>
          </button>
        );
      })}
    </div>
  );
}
