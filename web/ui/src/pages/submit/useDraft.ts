import { useState } from "react";

export interface Draft {
  file: string;
  text: string;
  dir: string;
}

const key = "coxswain-draft";

/** What is being written: it is kept in this tab until it is closed, so that a look at the queue loses nothing. */
export function useDraft(): [Draft, (change: Partial<Draft>) => void] {
  const [draft, setDraft] = useState<Draft>(read);
  const change = (next: Partial<Draft>) => {
    const changed = { ...draft, ...next };
    setDraft(changed);
    try {
      sessionStorage.setItem(key, JSON.stringify(changed));
    } catch {
      // it is kept while the page is open
    }
  };
  return [draft, change];
}

function read(): Draft {
  const empty = { file: "", text: "", dir: "" };
  try {
    return { ...empty, ...(JSON.parse(sessionStorage.getItem(key) ?? "{}") as Partial<Draft>) };
  } catch {
    return empty;
  }
}
