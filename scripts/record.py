#!/usr/bin/env python3
"""Record a command as an animated SVG: each line appears when it was printed.

    scripts/record.py docs/images/cox-run.svg bin/cox run examples/train.sbatch

The picture holds what the command really printed, nothing else. Lines beyond
MOST are thinned in the middle, which the picture says.
"""
import html
import os
import selectors
import subprocess
import sys
import time

MOST = 34  # lines in the picture
SPEED = 1.0


def record(argv):
    """Run argv and return [(seconds, line)], and its exit code."""
    start = time.monotonic()
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    os.set_blocking(p.stdout.fileno(), False)
    sel = selectors.DefaultSelector()
    sel.register(p.stdout, selectors.EVENT_READ)
    lines, part = [], b""
    while True:
        sel.select()
        data = p.stdout.read()
        if data is None:
            continue
        if not data:
            break
        part += data
        *whole, part = part.split(b"\n")
        now = time.monotonic() - start
        lines += [(now, w.decode("utf-8", "replace")) for w in whole]
    return lines, p.wait()


def thin(lines):
    if len(lines) <= MOST:
        return lines
    head, tail = MOST - 14, 13
    left_out = len(lines) - head - tail
    return lines[:head] + [(lines[head][0], f" … {left_out} more lines …")] + lines[-tail:]


def colour(line):
    word = line.split(" ")[0]
    if line.startswith("$"):
        return "#f0f3f6"
    if word in ("done", "gang", "engine", "ranks", "files", "used", "first", "waits"):
        return "#7ee787" if word == "done" else "#79c0ff"
    if line.lstrip().startswith(("!", "·")):
        return "#d29922"
    return "#c9d1d9"


def svg(title, lines):
    rows = [(0.0, "$ " + title)] + lines
    width = max(len(t) for _, t in rows) * 8.0 + 40
    height = len(rows) * 19 + 40
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" role="img">',
        f"<title>{html.escape(title)}</title>",
        "<style>text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}"
        ".l{animation:a .01s linear both}@keyframes a{from{opacity:0}to{opacity:1}}"
        "@media(prefers-reduced-motion:reduce){.l{animation-delay:0s!important}}</style>",
        f'<rect width="{width:.0f}" height="{height}" rx="8" fill="#0d1117"/>',
    ]
    for i, (at, text) in enumerate(rows):
        y = 30 + i * 19
        out.append(
            f'<text class="l" style="animation-delay:{at / SPEED + 0.3:.2f}s" x="20" y="{y}" fill="{colour(text)}" xml:space="preserve">{html.escape(text)}</text>'
        )
    out.append("</svg>\n")
    return "\n".join(out)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    lines, code = record(sys.argv[2:])
    title = " ".join([os.path.basename(sys.argv[2])] + sys.argv[3:])
    with open(sys.argv[1], "w", encoding="utf-8") as f:
        f.write(svg(title, thin(lines)))
    print(f"{sys.argv[1]}: {len(lines)} lines, exit {code}")


if __name__ == "__main__":
    main()
