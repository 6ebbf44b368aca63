import { useEffect, useState } from "react";
import "./Command.css";

/** A command that does the same as the page, to copy. */
export function Command({ text }: { text: string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = () => {
    void copyText(text).then(() => setCopied(true), () => undefined);
  };
  return (
    <span className="command">
      <code>{text}</code>
      <button type="button" onClick={copy} aria-label={`Copy: ${text}`}>{copied ? "Copied" : "Copy"}</button>
    </span>
  );
}

/** The clipboard needs https or this machine; on plain http the text is copied from a selection. */
async function copyText(text: string) {
  if (window.isSecureContext) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
