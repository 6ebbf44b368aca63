import { useSyncExternalStore } from "react";

/** How the console is painted: as the system says, or as the reader chose in this browser. */
export type Theme = "system" | "light" | "dark";

const key = "coxswain-theme";
const listeners = new Set<() => void>();

function stored(): Theme {
  const value = readStored();
  return value === "light" || value === "dark" ? value : "system";
}

// A browser may forbid a page to store anything.
function readStored(): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

let theme = stored();

/** Paints the page; called once before the first render. */
export function applyTheme() {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

export function setTheme(next: Theme) {
  theme = next;
  try {
    localStorage.setItem(key, next);
  } catch {
    // it holds until the tab is closed
  }
  applyTheme();
  for (const listener of listeners) listener();
}

export function useTheme(): Theme {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    () => theme,
  );
}
