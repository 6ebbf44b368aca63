import { useEffect, useRef } from "react";

/** What keys do on a page: by the key's name, as in KeyboardEvent.key. */
export type Keys = Record<string, () => void>;

const stack: { current: Keys }[] = [];

/** Gives keys a meaning while the component is shown. The innermost component goes first. */
export function useKeys(keys: Keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    stack.push(latest);
    return () => {
      stack.splice(stack.indexOf(latest), 1);
    };
  }, []);
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

function isControl(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest("a, button, summary, [role=tab], [role=menuitem]") !== null;
}

window.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector("[role=dialog]") !== null) return; // a dialog has its own keys
  if (isTyping(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  if (event.key === "Enter" && isControl(event.target)) return;
  for (const keys of [...stack].reverse()) {
    const action = keys.current[event.key];
    if (action !== undefined) {
      event.preventDefault();
      action();
      return;
    }
  }
});
