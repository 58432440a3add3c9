import type { BrowserContext, Page } from "playwright-core";
import { expect } from "vitest";
import { dashboardTest } from "./harness.ts";

/* What the first load of the dashboard costs. The size is a promise; the time is a figure of this machine, and only printed. */

const test = dashboardTest();

const FIRST_LOAD_BYTES_MAX = 180_000;
/** A browser has six connections: each further six requests wait for one more way there and back. */
const FIRST_LOAD_REQUESTS_MAX = 20;

/** Bytes over the wire, with heads, by path of what was fetched. */
async function measureTraffic(context: BrowserContext, page: Page): Promise<ReadonlyMap<string, number>> {
  const protocol = await context.newCDPSession(page);
  const paths = new Map<string, string>();
  const bytes = new Map<string, number>();
  protocol.on("Network.requestWillBeSent", ({ requestId, request }) => {
    paths.set(requestId, new URL(request.url).pathname);
  });
  protocol.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
    const path = paths.get(requestId) ?? "";
    bytes.set(path, (bytes.get(path) ?? 0) + encodedDataLength);
  });
  await protocol.send("Network.enable");
  return bytes;
}

test("first dashboard load transfers at most 180 kB", async ({ context, open }) => {
  // Signs in, which a person has done at the first load.
  await (await open("/")).close();
  const page = await context.newPage();
  const bytes = await measureTraffic(context, page);
  await (await context.newCDPSession(page)).send("Network.clearBrowserCache");
  const startedMs = performance.now();
  await page.goto("/dashboard/");
  await page.locator("main h1").waitFor();
  const titleMs = performance.now() - startedMs;
  await page.locator("main [role=row], main table tr, main .empty, main .home-list li").first().waitFor();
  const rowMs = performance.now() - startedMs;
  await page.waitForLoadState("networkidle");
  const total = [...bytes.values()].reduce((sum, count) => sum + count, 0);
  const kilobytes = (count: number): string => `${(count / 1000).toFixed(1)} kB`;
  const largest = [...bytes].toSorted(([, one], [, other]) => other - one).slice(0, 8);
  console.log(
    [
      `first load ${kilobytes(total)} of at most ${kilobytes(FIRST_LOAD_BYTES_MAX)}, in ${bytes.size} requests`,
      `title after ${titleMs.toFixed(0)} ms, first row after ${rowMs.toFixed(0)} ms`,
      ...largest.map(([path, count]) => `  ${kilobytes(count).padStart(9)}  ${path}`),
    ].join("\n"),
  );
  expect(total).toBeLessThanOrEqual(FIRST_LOAD_BYTES_MAX);
  expect(bytes.size).toBeLessThanOrEqual(FIRST_LOAD_REQUESTS_MAX);
  // The scripts were among what was counted, and not in the browser's cache.
  expect(Math.max(...[...bytes].filter(([path]) => path.endsWith(".js")).map(([, count]) => count))).toBeGreaterThan(
    50_000,
  );
});

test("second dashboard load requests no hashed file again", async ({ context, open }) => {
  await (await open("/")).close();
  const page = await context.newPage();
  const bytes = await measureTraffic(context, page);
  await page.goto("/dashboard/");
  await page.locator("main h1").waitFor();
  const again = [...bytes].filter(([path, count]) => path.includes("/assets/") && count > 0);
  expect(again).toEqual([]);
});
