// Sums what a browser has to fetch, packed, and fails above the budget.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const budget = { ".js": 250_000, ".css": 40_000 }; // bytes with gzip, of all files together
const dist = fileURLToPath(new URL("../dist", import.meta.url));

function* files(dir) {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) yield* files(path);
    else yield path;
  }
}

let failed = false;
for (const [suffix, most] of Object.entries(budget)) {
  let sum = 0;
  for (const path of files(dist)) if (path.endsWith(suffix)) sum += gzipSync(readFileSync(path), { level: 9 }).length;
  const ok = sum <= most;
  failed ||= !ok;
  console.log(`${suffix} ${(sum / 1000).toFixed(1)} kB with gzip of at most ${most / 1000} kB${ok ? "" : ": too much"}`);
}
for (const path of files(dist)) {
  if (!path.endsWith(".js") && !path.endsWith(".css") && !path.endsWith(".html")) continue;
  // Names of XML namespaces and addresses in messages are no requests; nothing else may look like one.
  const hosts = [...readFileSync(path, "utf8").matchAll(/(?:src|href|url\(|import\(|fetch\()\s*=?\s*["'`]?(https?:\/\/[^"'`)\s]+)/g)].map((m) => m[1]);
  if (hosts.length > 0) {
    failed = true;
    console.error(`${path} asks another address: ${hosts.join(", ")}`);
  }
}
process.exit(failed ? 1 : 0);
