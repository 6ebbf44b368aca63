const key = "coxswain-reloaded";

/** Loads the console again, at most once a minute: a server that is away is not asked for ever. */
export function reloadOnce() {
  try {
    if (Date.now() - Number(sessionStorage.getItem(key) ?? 0) < 60_000) return;
    sessionStorage.setItem(key, String(Date.now()));
  } catch {
    return;
  }
  window.location.reload();
}
