// A signed-in browser, and what every flow needs of it.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const tools = createRequire(`${process.env.COX_CONSOLE}/`);
const { chromium } = tools("playwright-core");
const axe = readFileSync(tools.resolve("axe-core/axe.min.js"), "utf8");

/** How long a page may take to show what is waited for, in milliseconds: machines of tests are slow. */
const patience = Number(process.env.COX_PATIENCE ?? 60_000);

/** Starts a browser and signs it in by a link of cox web. */
export async function openBrowser(link, size = { width: 1280, height: 900 }) {
  const browser = await chromium.launch({
    executablePath: process.env.COX_CHROMIUM || "/usr/bin/chromium",
    args: process.getuid() === 0 ? ["--no-sandbox"] : [],
    timeout: patience,
  });
  const context = await browser.newContext({ viewport: size, colorScheme: "light", reducedMotion: "reduce" });
  context.setDefaultTimeout(patience);
  context.setDefaultNavigationTimeout(patience);
  const page = await context.newPage();
  const faults = []; // of the console itself
  page.on("pageerror", (error) => faults.push(`error on the page: ${error.message}`));
  page.on("dialog", (dialog) => { faults.push(`a dialog: ${dialog.message()}`); void dialog.dismiss(); });
  page.on("console", (message) => { if (/Content.Security.Policy/i.test(message.text())) faults.push(message.text()); });
  page.on("request", (request) => {
    if (!/^(data|blob):/.test(request.url()) && new URL(request.url()).origin !== new URL(link).origin) faults.push(`a request to ${request.url()}`);
  });
  await visit(page, link);
  return { browser, page, faults, origin: new URL(link).origin };
}

/** Opens an address. A browser gives up on a page whenever the machine's networks change, as other tests do. */
export async function visit(page, address) {
  for (let left = 20; ; left--) {
    try {
      return await page.goto(address);
    } catch (error) {
      if (left === 0 || !error.message.includes("ERR_NETWORK_CHANGED")) throw error;
    }
  }
}

/** The serious faults of accessibility on the page, as texts. */
export async function seriousFaults(page) {
  // The policy of the console lets no script in, so axe is run outside of the page's own world.
  const session = await page.context().newCDPSession(page);
  const { frameTree } = await session.send("Page.getFrameTree");
  const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
  await session.send("Runtime.evaluate", { contextId: executionContextId, expression: axe });
  const { result, exceptionDetails } = await session.send("Runtime.evaluate", {
    contextId: executionContextId, awaitPromise: true, returnByValue: true,
    expression: "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations)",
  });
  await session.detach();
  if (exceptionDetails) throw new Error(`axe: ${exceptionDetails.exception?.description ?? exceptionDetails.text}`);
  return result.value
    .filter((each) => each.impact === "serious" || each.impact === "critical")
    .map((each) => `${each.id}: ${each.help}: ${each.nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`);
}
