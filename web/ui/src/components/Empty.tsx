import type { ReactNode } from "react";
import "./Empty.css";

/** Says that there is nothing, and what to do. */
export function Empty({ children }: { children: ReactNode }) {
  return <div className="empty">{children}</div>;
}
