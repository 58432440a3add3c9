import { describe, expect } from "vitest";
import { inDatabase } from "./database.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

const KEYS = 100_000;

async function seed(dashboard: Dashboard): Promise<string> {
  const [known] = await dashboard.call("admin.listApis", { search: "hundred thousand" });
  if (known !== undefined) return known.apiId;
  const { apiId } = await dashboard.call("apis.createApi", { name: "a hundred thousand" });
  // Without triggers: no gate needs these keys.
  await inDatabase(
    dashboard,
    `with off as (select set_config('session_replication_role', 'replica', false))
     insert into keys (id, workspace_id, api_id, hash, start, name, enabled, created_at)
     select 'key_' || md5(n::text), a.workspace_id, a.id, 'many' || n, 'many_' || left(md5(n::text), 4),
            'Customer ' || n, n % 50 <> 0, 1700000000000 + n * 7
       from off, apis a cross join generate_series(1, ${KEYS}) as n
      where a.id = $1`,
    [apiId],
  );
  await inDatabase(dashboard, "vacuum analyze keys");
  return apiId;
}

describe("with 100,000 keys in an API", () => {
  test("key list of 100,000 keys loads, searches and scrolls without long tasks", { timeout: 120_000 }, async ({
    dashboard,
    open,
  }) => {
    const apiId = await seed(dashboard);
    const page = await open("/apis");
    await page.getByRole("link", { name: "a hundred thousand" }).waitFor();
    await page.getByRole("row").getByText("10,000+").waitFor();
    await page.getByRole("link", { name: "a hundred thousand" }).click();
    await page.getByRole("link", { name: "All keys of the API" }).waitFor();
    const firstRow = await page.evaluate(
      async ({ apiId, text }) => {
        const link = document.querySelector<HTMLAnchorElement>(`a[href*="/keys"][href*="${apiId}"]`);
        if (link === null) throw new Error("the API has no link");
        const begun = performance.now();
        link.click();
        const until = begun + 10_000;
        while (![...document.querySelectorAll('[role="row"]')].some((row) => row.textContent?.includes(text))) {
          if (performance.now() > until) throw new Error("no row");
          await new Promise((resolve) => requestAnimationFrame(resolve));
        }
        return performance.now() - begun;
      },
      { apiId, text: `Customer ${KEYS}` },
    );

    const field = page.getByLabel("Search, or paste a complete key");
    const begun = performance.now();
    await field.fill("customer 4711");
    await page.getByText("Customer 4711", { exact: true }).waitFor();
    const search = performance.now() - begun;
    expect(
      await page
        .getByRole("row")
        .getByText(/^Customer 4711/)
        .count(),
    ).toBeGreaterThan(1);
    await field.fill("");
    await page.getByText("100 keys loaded; there are more").waitFor();

    await page.evaluate(() => {
      const tasks: number[] = [];
      Object.assign(globalThis, { longTasks: tasks });
      new PerformanceObserver((list) => void tasks.push(...list.getEntries().map(({ duration }) => duration))).observe({
        type: "longtask",
      });
    });
    const scroller = page.locator(".table-scroller");
    for (let step = 0; step < 60; step++) {
      await scroller.evaluate((element) => element.scrollBy(0, 400));
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    }
    await expect.poll(() => page.locator(".table-foot").textContent()).toMatch(/^[3-9]\d\d|1,/);
    const longTasks = await page.evaluate(() => (globalThis as unknown as { longTasks: number[] }).longTasks);
    const longest = Math.round(Math.max(0, ...longTasks));
    const rendered = await page.getByRole("row").count();
    console.info(
      `100,000 keys: first row ${Math.round(firstRow)} ms, search ${Math.round(search)} ms, longest task while scrolling ${longest} ms, ${rendered} rows in the document`,
    );
    expect(rendered).toBeLessThan(80);
    // What is promised is 500 and 100 ms on a machine that does nothing else; tests share theirs with others.
    expect(firstRow).toBeLessThan(process.env.QUIET_MACHINE === "1" ? 500 : 5000);
    expect(longest).toBeLessThan(process.env.QUIET_MACHINE === "1" ? 100 : 1000);
  });

  test("key list offers no batch change for more than 1,000 selected keys, and stays fast", {
    timeout: 120_000,
  }, async ({ dashboard, open }) => {
    const page = await open(`/keys?api=${await seed(dashboard)}`);
    await page.getByText("100 keys loaded; there are more").waitFor();
    await page.getByRole("row").nth(1).press("Space");
    const more = page.getByRole("button", { name: "Load more" });
    const loaded = async (): Promise<number> =>
      Number(/^[\d,]+/.exec((await page.locator(".table-foot").textContent()) ?? "")?.[0].replace(",", ""));
    while ((await loaded()) < 1100) {
      const before = await loaded();
      await more.click();
      await expect.poll(loaded).toBeGreaterThan(before);
    }
    const bar = page.getByRole("region", { name: "Selection" });
    await bar.getByText("1 key selected", { exact: true }).waitFor();
    const all = page.getByRole("checkbox", { name: "Select all loaded keys" });
    const begun = performance.now();
    await all.click();
    await bar.getByText("1,100 keys selected", { exact: true }).waitFor();
    const selecting = performance.now() - begun;
    await bar.getByText("Actions take at most 1,000.").waitFor();
    expect(await bar.getByRole("button", { name: "Delete" }).count()).toBe(0);
    await page.getByRole("row").nth(1).press("Space");
    await bar.getByRole("button", { name: "Keep the first 1,000" }).click();
    await bar.getByText("1,000 keys selected", { exact: true }).waitFor();
    // Of the selected keys, to which the first of the list does not belong.
    expect(await page.getByRole("row").nth(1).getByRole("checkbox").isChecked()).toBe(false);
    await bar.getByRole("button", { name: "Disable" }).click();
    await page.getByRole("dialog").getByText("and 995 more").waitFor();
    expect(await page.getByRole("row", { includeHidden: true }).count()).toBeLessThan(80);
    console.info(`1,100 keys selected in ${Math.round(selecting)} ms`);
    expect(selecting).toBeLessThan(2000);
  });
});
