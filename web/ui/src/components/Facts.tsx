import type { ReactNode } from "react";
import "./Facts.css";

export type Fact = [name: string, value: ReactNode];

/** Facts, one a line. A fact without a value is left out. */
export function Facts({ facts }: { facts: Fact[] }) {
  return (
    <dl className="facts">
      {facts.map(([name, value]) =>
        value === undefined || value === null || value === "" || value === false ? null : (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
