// Draws the pages of the console into the folder COX_SHOTS.
import { openBrowser, visit } from "./browser.mjs";

const { COX_LINK: link, COX_SHOTS: folder, COX_TRAIN_JOB: train, COX_WAITING_JOB: waits } = process.env;
const shots = [
  ["overview", "/"],
  ["queue", "/queue"],
  ["job", `/jobs/${train}`],
  ["log", `/jobs/${train}?tab=log`],
  ["why", `/jobs/${waits}`],
  ["room", "/room?colour=user&node=v2"],
  ["services", "/services?service=web"],
  ["pools", "/pools"],
  ["plan", "/plan"],
  ["reports", "/reports"],
  ["submit", "/submit"],
];

const { browser, page, origin } = await openBrowser(link, { width: 1200, height: 760 });
for (const [name, path] of shots) {
  await visit(page, origin + path);
  await page.locator("main h1").waitFor();
  await page.waitForFunction(() => document.querySelector(".loading") === null);
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await page.screenshot({ path: `${folder}/${name}.png`, animations: "disabled" });
}
await page.emulateMedia({ colorScheme: "dark" });
await visit(page, origin + "/queue");
await page.locator("main h1").waitFor();
await page.waitForFunction(() => document.querySelector(".loading") === null);
await page.screenshot({ path: `${folder}/queue-dark.png`, animations: "disabled" });
await browser.close();
