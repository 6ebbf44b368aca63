import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ProblemView } from "./Problem";
import "./Async.css";

interface AsyncProps<T> {
  query: UseQueryResult<T>;
  children: (data: T) => ReactNode;
}

/** What a query has: its data, its problem, or that it is on its way. Data stay while a later request fails. */
export function Async<T>({ query, children }: AsyncProps<T>) {
  if (query.data !== undefined) {
    return (
      <>
        {query.error && <ProblemView error={query.error} />}
        {children(query.data)}
      </>
    );
  }
  if (query.error) return <ProblemView error={query.error} />;
  return <p className="loading" aria-live="polite">Loading …</p>;
}
