const most = 50_000; // lines that are kept; a page with more would be slow

// Colours and moves of the cursor, which a terminal would follow and a page does not.
const control = /\u001b\[[0-9;?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)|\u001b[@-Z\\-_]|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g;

/** The lines of an output that arrives in pieces. The oldest are dropped. */
export class LogText {
  dropped = 0;
  private whole: string[] = [];
  private last = "";

  append(chunk: string) {
    const parts = (this.last + chunk).split("\n");
    this.last = parts.pop() ?? "";
    for (const part of parts) this.whole.push(clean(part));
    if (this.whole.length > most) {
      const extra = this.whole.length - most;
      this.whole.splice(0, extra);
      this.dropped += extra;
    }
  }

  /** All lines, the one that has not ended too. */
  lines(): readonly string[] {
    return this.last === "" ? this.whole.slice() : [...this.whole, clean(this.last)];
  }
}

/** A line as it would be seen: what a progress bar wrote last, without control characters. */
export function clean(line: string): string {
  const text = line.endsWith("\r") ? line.slice(0, -1) : line;
  return text.slice(text.lastIndexOf("\r") + 1).replace(control, "");
}
