import { useEffect, type ReactNode } from "react";
import "./Page.css";

interface PageProps {
  title: string; // of the browser's tab
  heading?: ReactNode; // the title, unless given
  aside?: ReactNode;
  children: ReactNode;
}

/** The frame of a page: its headline, what stands beside it, and its parts below each other. */
export function Page({ title, heading, aside, children }: PageProps) {
  useEffect(() => {
    document.title = `${title} – Coxswain`;
  }, [title]);
  return (
    <div className="page">
      <header className="page-head">
        <h1>{heading ?? title}</h1>
        {aside !== undefined && <div className="page-aside">{aside}</div>}
      </header>
      {children}
    </div>
  );
}
