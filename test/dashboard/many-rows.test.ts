import { expect } from "vitest";
import { createPool } from "../../postgres/pool.ts";
import { dashboardTest } from "./harness.ts";

/* A list of a hundred thousand. What the document holds is bounded, and so are times. */

const test = dashboardTest();
const ROWS = 100_000;

test.beforeAll(async ({ dashboard }) => {
  const db = createPool(dashboard.databaseUrl, { connectionsMax: 1 });
  await db.query(
    `insert into identities (id, workspace_id, external_id, created_at)
     select 'id_' || lpad(n::text, 12, '0'), (select id from workspaces where name = 'default'), 'customer-' || n, 0
       from generate_series(1, $1) as n`,
    [ROWS],
  );
  await db.query("analyze identities");
  await db.end();
});

test("list of 100,000 rows loads quickly and keeps the DOM small", async ({ open }) => {
  const page = await open("/nowhere");
  await page.evaluate(() => {
    const tasks: number[] = [];
    Object.assign(globalThis, { tasks });
    new PerformanceObserver((list) => tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
      type: "longtask",
    });
  });
  const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Identities" });
  const startedMs = performance.now();
  await link.click();
  await page.getByText("customer-1", { exact: true }).waitFor();
  const firstMs = performance.now() - startedMs;
  const scroller = page.locator(".table-scroller");
  for (let screen = 0; screen < 60; screen++) {
    await scroller.evaluate((element) => element.scrollBy(0, element.clientHeight * 2));
    await page.waitForTimeout(16);
  }
  await page.getByText(/loaded; there are more/).waitFor();
  const rows = await page.getByRole("row").count();
  const tasks = await page.evaluate(() => (globalThis as unknown as { tasks: number[] }).tasks);
  console.log(
    `first row of ${ROWS.toLocaleString("en")} after ${firstMs.toFixed(0)} ms; ` +
      `tasks of 50 ms and more while scrolling: ${tasks.map((ms) => ms.toFixed(0)).join(", ") || "none"}`,
  );
  expect(rows).toBeLessThan(100);
  // What is promised is 500 and 100 ms on a machine that does nothing else; tests share theirs with others.
  const isQuiet = process.env.QUIET_MACHINE === "1";
  expect(firstMs).toBeLessThan(isQuiet ? 500 : 10_000);
  expect(Math.max(0, ...tasks)).toBeLessThan(isQuiet ? 100 : 1000);
});
