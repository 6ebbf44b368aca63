// What people do with the console, in a real browser, one flow after the other. The server of
// test/console has two nodes, a service "web" with one replica, and a job "long" that holds both nodes.
// Prints a line of JSON for each flow: {"flow", "error"}; or {"ask"}, which the test answers with a line when it
// has done it.
import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { openBrowser, seriousFaults, visit } from "./browser.mjs";

const { COX_LINK: link, COX_DIR: dir, COX_CANARY: canary, COX_CANARY_JOB: canaryJob, COX_LONG_JOB: longJob } = process.env;
const { browser, page, faults, origin } = await openBrowser(link);
const pages = ["/", "/queue", "/room", "/room?as=list&node=v1", "/services", "/services?service=web", "/pools", "/plan", "/reports", "/submit", `/jobs/${longJob}`, `/jobs/${canaryJob}?tab=log`];
const dark = ["/", "/queue", `/jobs/${longJob}`]; // are looked at in the dark too: all colours are there

const open = async (path) => {
  await visit(page, origin + path);
  await page.locator("main h1").waitFor();
  await page.waitForFunction(() => document.querySelector(".loading") === null);
};
const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
/** Has the test do something outside of the browser. */
const ask = async (what) => {
  console.log(JSON.stringify({ ask: what }));
  await answers.next();
};
const isLive = (of) => of.locator(".stream-live").waitFor();
const heading = (pattern) => page.locator("main h1", { hasText: pattern }).waitFor();
const confirm = (label) => page.getByRole("dialog").getByRole("button", { name: label, exact: true }).click();

/** Submits a script from the page, and returns the number of its job. */
async function submit(script) {
  await open("/submit");
  await page.getByLabel("Working directory on the server").fill(dir);
  await page.getByLabel("Script or specification").fill(script);
  await page.getByRole("button", { name: "Check", exact: true }).click();
  await page.getByText("What it would do").waitFor();
  await page.getByRole("main").getByRole("button", { name: "Submit", exact: true }).click();
  await page.waitForURL(/\/jobs\/\d+/);
  return new URL(page.url()).pathname.split("/").pop();
}

const flows = {
  "a link signs in, and the overview shows what runs": async () => {
    assert.equal(new URL(page.url()).pathname, "/");
    await page.getByText("long", { exact: false }).first().waitFor();
  },
  "a script that is wrong is refused in the words of the API": async () => {
    await open("/submit");
    await page.getByLabel("Working directory on the server").fill(dir);
    await page.getByLabel("Script or specification").fill("#!/bin/sh\n#SBATCH --nodes=many\ntrue\n");
    await page.getByRole("button", { name: "Check", exact: true }).click();
    await page.getByRole("alert").getByText("many").first().waitFor();
  },
  "a job that waits says why, and whose job holds its nodes": async () => {
    const id = await submit("#!/bin/sh\n#SBATCH -J large -N2 --exclusive\ntrue\n");
    await heading(/PENDING/);
    await page.getByText("Why it waits").waitFor();
    await page.getByRole("main").getByRole("link", { name: `job ${longJob}` }).first().waitFor();
    await open("/queue?view=waiting");
    await page.getByRole("row", { name: /large/ }).click();
    await page.waitForURL(new RegExp(`/jobs/${id}`));
  },
  "and is cancelled there": async () => {
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await page.getByRole("dialog").getByText(/cox cancel \d+/).waitFor();
    await confirm("Cancel");
    await heading(/CANCELLED/);
  },
  "a submitted job is seen to start, and its log is followed, searched and ends": async () => {
    await visit(page, `${origin}/jobs/${longJob}`);
    await page.getByRole("button", { name: "Cancel", exact: true }).click();
    await confirm("Cancel");
    await heading(/CANCELLED/);
    await submit("#!/bin/sh\n#SBATCH -J speaker\nfor i in 1 2 3; do echo line $i; done\nuntil [ -e go ]; do sleep 0.1; done\necho the last line\n");
    await heading(/RUNNING/);
    await page.getByRole("tab", { name: "Log" }).click();
    await page.getByRole("log").getByText("line 3").waitFor();
    await ask("let the job end");
    await page.getByRole("log").getByText("the last line").waitFor();
    await page.getByRole("searchbox").fill("line 2");
    await page.locator("mark", { hasText: "line 2" }).waitFor();
    await heading(/COMPLETED/);
  },
  "a node is drained with a reason, and resumed": async () => {
    await open("/room?node=v2");
    const panel = page.getByRole("complementary", { name: "Node v2" });
    await panel.getByRole("button", { name: "Drain" }).click();
    await page.getByLabel(/^Reason/).fill("a fan is loud");
    await confirm("Drain");
    await panel.getByText("a fan is loud").waitFor();
    await panel.getByRole("button", { name: "Resume" }).click();
    await confirm("Resume");
    await panel.getByRole("button", { name: "Drain" }).waitFor();
  },
  "services are found by name and state, and sorted": async () => {
    await open("/services?find=nothing-like-it");
    await page.getByText("No service fits the filter.").waitFor();
    await page.getByRole("searchbox").fill("WEB");
    await page.getByRole("row", { name: /web/ }).waitFor();
    await page.getByRole("link", { name: "p95" }).click();
    await page.waitForURL(/sort=-p95/);
    await page.getByRole("row", { name: /web/ }).waitFor();
  },
  "a service is scaled": async () => {
    await open("/services");
    await page.getByRole("row", { name: /web/ }).click();
    await page.waitForURL(/service=web/);
    await page.getByRole("button", { name: "Scale", exact: true }).click();
    await page.getByLabel("Replicas").fill("2");
    await page.getByRole("dialog").getByText("cox service scale web 2").waitFor();
    await confirm("Scale");
    await open("/services");
    await page.getByRole("row", { name: /web.*2\/2/ }).waitFor();
  },
  "reports are drawn, over time and by row": async () => {
    await open("/reports?since=1d");
    await page.getByRole("img", { name: /hours allocated over time/ }).waitFor();
    const bars = page.getByRole("list", { name: /-hours$/ }).getByRole("img", { name: /asked .*, allocated .*, used / });
    await bars.first().waitFor();
    assert.ok((await bars.first().locator("rect").first().boundingBox()).width > 50, "nothing is drawn as asked for");
    await open("/reports?since=1d&kind=efficiency");
    await page.getByText("not measured", { exact: true }).waitFor();
  },
  "keys move through the queue": async () => {
    await open("/queue");
    await page.getByRole("row", { name: /web/ }).first().waitFor();
    await page.keyboard.press("j");
    await page.locator('[role=row][aria-selected="true"]').waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/jobs\/\d+/);
    await heading(/RUNNING/);
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keys" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.keyboard.press("Escape");
    await page.waitForURL(/\/queue/);
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.type), "search");
  },
  "ended jobs are found by a text": async () => {
    await open("/queue?view=ended&find=ONERROR");
    await page.getByRole("row", { name: /onerror/ }).first().waitFor();
    await open("/queue?view=ended&find=nothing-like-it");
    assert.equal(await page.getByRole("row", { name: /onerror/ }).count(), 0);
  },
  "what users write is text everywhere": async () => {
    await open(`/jobs/${canaryJob}?tab=log`);
    await page.getByRole("log").getByText(canary, { exact: false }).first().waitFor();
    for (const path of ["/queue?view=ended", `/jobs/${canaryJob}`, `/jobs/${canaryJob}?tab=source`]) {
      await open(path);
      await page.getByText(canary, { exact: false }).first().waitFor();
    }
    assert.equal(await page.evaluate(() => globalThis.canary), undefined);
  },
  "two tabs of a browser have one stream": async () => {
    const second = await page.context().newPage();
    await Promise.all([open("/queue"), visit(second, `${origin}/`)]);
    await Promise.all([isLive(page), isLive(second)]);
    let streams = "";
    for (let left = 300; left > 0 && streams !== "1"; left--) { // one that was opened anew for other jobs is counted twice for a moment
      if (streams !== "") await page.waitForTimeout(100);
      streams = /^cox_watchers (\d+)$/m.exec(await (await page.request.get(`${origin}/metrics`)).text())?.[1];
    }
    await second.close();
    assert.equal(streams, "1");
  },
  "a page outlives a restart of the server": async () => {
    await open("/queue");
    await isLive(page);
    await page.evaluate(() => { globalThis.neverLoadedAnew = true; });
    await Promise.all([ask("restart the server and submit the job afterwards"), page.locator(".stream-lost").waitFor()]);
    await isLive(page);
    await page.getByRole("row", { name: /afterwards/ }).waitFor();
    assert.equal(await page.evaluate(() => globalThis.neverLoadedAnew), true);
  },
  "no page has a serious fault of accessibility, light or dark": async () => {
    const found = [];
    for (const path of pages) {
      await open(path);
      for (const scheme of dark.includes(path) ? ["light", "dark"] : ["light"]) {
        await page.emulateMedia({ colorScheme: scheme });
        for (const each of await seriousFaults(page)) found.push(`${path}, ${scheme}: ${each}`);
      }
    }
    await page.emulateMedia({ colorScheme: "light" });
    assert.deepEqual(found, []);
  },
  "each page is readable at 400 pixels, and its lists are sorted there": async () => {
    await page.setViewportSize({ width: 400, height: 800 });
    const wide = [];
    for (const path of pages) {
      await open(path);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > 400) wide.push(`${path}: ${width}`);
    }
    await open("/queue?sort=user");
    const sort = page.getByLabel("Sort by");
    assert.equal(await sort.inputValue(), "user");
    await sort.selectOption({ label: "GPUs ↓" });
    await page.waitForURL(/sort=-gpus/);
    await page.setViewportSize({ width: 1280, height: 900 });
    await sort.waitFor({ state: "hidden" });
    await page.locator('[aria-sort="descending"]', { hasText: "GPUs" }).waitFor();
    assert.deepEqual(wide, []);
  },
  "nothing was refused by the policy, asked of others or thrown": () => assert.deepEqual(faults, []),
  "sign out ends the session": async () => {
    await open("/queue");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("cox web").first().waitFor();
    assert.equal((await page.request.get(`${origin}/v1/jobs`)).status(), 401);
  },
};

let failed = 0;
for (const [flow, run] of Object.entries(flows)) {
  let error = "";
  try {
    await run();
  } catch (thrown) {
    error = `${thrown.message}\nat ${page.url()}, which shows:\n${await page.locator("body").innerText().catch(() => "nothing")}`;
    failed++;
  }
  console.log(JSON.stringify({ flow, error }));
  if (failed === 3) break; // what else fails says no more
}
await browser.close();
process.exit(failed > 0 ? 1 : 0);
