import { useSyncExternalStore } from "react";

// The address bar is the state of the console: which page, which filters, which tab. Every view can
// be sent to a colleague as a link.

const listeners = new Set<() => void>();

function changed() {
  for (const listener of listeners) listener();
}

window.addEventListener("popstate", changed);

/** Goes to an address of the console. */
export function navigate(to: string, options: { replace?: boolean } = {}) {
  if (to === window.location.pathname + window.location.search) return;
  if (options.replace) window.history.replaceState(null, "", to);
  else {
    window.history.pushState(null, "", to);
    window.scrollTo(0, 0);
  }
  changed();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The path of the page that is shown. */
export function usePath(): string {
  return useSyncExternalStore(subscribe, () => window.location.pathname);
}

/** The parameters of the page that is shown. */
export function useQuery(): URLSearchParams {
  return new URLSearchParams(useSyncExternalStore(subscribe, () => window.location.search));
}

/** The address of the current page with other parameters; an empty value removes one. */
export function withQuery(change: Record<string, string | undefined>): string {
  const query = new URLSearchParams(window.location.search);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === "") query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  return window.location.pathname + (text === "" ? "" : `?${text}`);
}

/** Changes parameters of the current page, without a step in the browser's history. */
export function setQuery(change: Record<string, string | undefined>) {
  navigate(withQuery(change), { replace: true });
}
