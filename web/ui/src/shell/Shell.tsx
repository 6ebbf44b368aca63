import { useState, type ReactNode } from "react";
import { useServer } from "../api/queries";
import { addresses } from "../router/addresses";
import { Link } from "../router/Link";
import { navigate, usePath } from "../router/location";
import { KeyHelp } from "./KeyHelp";
import { useKeys } from "./keys";
import { SignOut } from "./SignOut";
import { StreamLamp } from "./StreamLamp";
import { ThemeSwitch } from "./ThemeSwitch";
import { setTheme } from "./theme";
import "./Shell.css";

const pages: [label: string, to: string][] = [
  ["Overview", addresses.overview],
  ["Queue", addresses.queue],
  ["Machine room", addresses.room],
  ["Services", addresses.services],
  ["Pools", addresses.pools],
  ["Plan", addresses.plan],
  ["Reports", addresses.reports],
  ["Submit", addresses.submit],
];

/** The frame around all pages: the menu, who is signed in, keys. */
export function Shell({ children }: { children: ReactNode }) {
  const path = usePath();
  const server = useServer();
  const [helps, setHelps] = useState(false);
  useKeys({
    "?": () => setHelps(true),
    "/": focusSearch,
    t: () => setTheme(isDark() ? "light" : "dark"),
    ...Object.fromEntries(pages.map(([, to], i) => [String(i + 1), () => navigate(to)])),
  });
  return (
    <div className="shell">
      <a className="shell-skip" href="#main">Skip to the page</a>
      <header className="shell-bar">
        <Link to={addresses.overview} className="shell-brand">
          <img src="/icon.svg" alt="" width="22" height="22" />
          <span>{server.data?.name ?? "Coxswain"}</span>
        </Link>
        <nav className="shell-nav" aria-label="Pages">
          {pages.map(([label, to]) => (
            <Link key={to} to={to} aria-current={isCurrent(path, to) ? "page" : undefined}>{label}</Link>
          ))}
        </nav>
        <div className="shell-tools">
          <StreamLamp />
          {server.data && <span className="shell-user" title={`signed in by ${server.data.you.via}`}>{server.data.you.name}{server.data.you.admin ? " (admin)" : ""}</span>}
          {server.data?.you.session && <SignOut />}
          <ThemeSwitch />
          <button type="button" className="shell-help" onClick={() => setHelps(true)} aria-label="Keys">?</button>
        </div>
      </header>
      <main id="main" className="shell-main" tabIndex={-1}>{children}</main>
      <KeyHelp isOpen={helps} onClose={() => setHelps(false)} />
    </div>
  );
}

function isCurrent(path: string, to: string): boolean {
  if (to === addresses.queue) return path === to || path.startsWith("/jobs/");
  return path === to;
}

function focusSearch() {
  document.querySelector<HTMLInputElement>("[data-search]")?.focus();
}

function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
}
