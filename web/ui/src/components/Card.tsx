import type { ReactNode } from "react";
import "./Card.css";

interface CardProps {
  title?: ReactNode;
  aside?: ReactNode;
  children: ReactNode;
}

/** A part of a page with a headline. */
export function Card({ title, aside, children }: CardProps) {
  return (
    <section className="card">
      {title !== undefined && (
        <header className="card-head">
          <h2>{title}</h2>
          {aside !== undefined && <div className="card-aside">{aside}</div>}
        </header>
      )}
      {children}
    </section>
  );
}
