import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { expectAccessible, expectNoSideways, expectPresentable } from "./accessible.ts";
import { EVERY_PAGE, fillWorkspace } from "./every-page.ts";
import { dashboardTest } from "./harness.ts";
import { expectReachable } from "./keyboard.ts";

/*
 * What holds for each page of the navigation, whatever it shows. That no page has an error on its console, breaks its policy or asks another
 * host is held by the harness, here and in every other file.
 */

const test = dashboardTest();
test.beforeAll(async ({ dashboard }) => fillWorkspace(dashboard));

/** Beside the pages of the navigation, one that a link in a page leads to. */
const SWEPT = [...EVERY_PAGE, "/usage/sql"];

/** What a page asks for at its start has come. */
async function settled(page: Page): Promise<void> {
  await page.waitForLoadState("networkidle");
  await page
    .getByText(/^Loading …$/)
    .first()
    .waitFor({ state: "hidden" });
}

/** As the vitals of the web have it, 0.1 is good. */
const SHIFT_MAX = 0.05;

/** Fails when what the page showed at first was moved by what came later. */
async function expectSteady(page: Page): Promise<void> {
  const moved = await page.evaluate(
    () =>
      new Promise<{ shift: number; what: string[] }>((resolve) => {
        new PerformanceObserver((list) => {
          const shifts = list.getEntries() as (PerformanceEntry & {
            value: number;
            sources: { node: Node | null }[];
          })[];
          resolve({
            shift: shifts.reduce((sum, { value }) => sum + value, 0),
            what: shifts.flatMap(({ sources }) => sources.map(({ node }) => (node as Element | null)?.className ?? "")),
          });
        }).observe({ type: "layout-shift", buffered: true });
        // A page in which nothing moved has no entries.
        setTimeout(() => resolve({ shift: 0, what: [] }), 100);
      }),
  );
  expect(moved.shift, moved.what.join(", ")).toBeLessThan(SHIFT_MAX);
}

/** What unfolds is open: tables of plots, queries, lists of what a query may name. */
const unfolded = (page: Page): Promise<void> =>
  page.evaluate(() => {
    for (const details of document.querySelectorAll("details")) details.open = true;
  });

describe.each(SWEPT)("%s", (path) => {
  test("dashboard page is accessible in both themes and by keyboard, and fits phone, tablet and wide screens", async ({
    open,
  }) => {
    const page = await open(path);
    await settled(page);
    await expectSteady(page);
    await expectReachable(page);
    await unfolded(page);
    await expectPresentable(page);
  });

  test("dashboard page shows a viewer all data that the role may read, without errors", async ({ open, faults }) => {
    // What belongs to the installation is refused to a viewer, and the page says so.
    faults.expect(/\b403\b.*\/v2\/admin\./);
    const page = await open(path, { role: "viewer" });
    await settled(page);
    await expectAccessible(page);
  });
});

describe("on a phone of 390 px", () => {
  test("page does not shift while it loads, is not wider than the phone, and shows rows as cards with all columns", async ({
    open,
  }) => {
    for (const path of ["/", "/keys", "/usage", "/root-keys"]) {
      const page = await open(path, { width: 390, height: 844 });
      await settled(page);
      await expectSteady(page);
      await expectNoSideways(page);
      if (path === "/keys") await expectCards(page);
      await page.close();
    }
  });

  test("search without results says so and offers a button that clears it", async ({ dashboard, open }) => {
    const page = await open("/apis", { width: 390, height: 844 });
    for (const path of ["apis", "identities", "permissions", "ratelimits", "policies", "workspaces"]) {
      await page.goto(`${dashboard.url}/dashboard/${path}?search=nothing-has-this-name`);
      await page.getByRole("button", { name: "Clear the search" }).click();
      await page.locator(".empty").waitFor({ state: "detached" });
      expect(new URL(page.url()).searchParams.has("search"), path).toBe(false);
    }
  });
});

/** Each card has its title and state in the first line, and below them all other columns; rows are moved through by arrows as ever. */
async function expectCards(page: Page): Promise<void> {
  const row = page.getByRole("row").nth(1);
  expect(await page.getByRole("columnheader").allTextContents()).toEqual([
    // The first column has the checkboxes.
    ...["", "Key", "Name", "Owner", "State", "Credits", "Expires", "Last used", "Created"],
  ]);
  expect(await row.getByRole("cell").count()).toBe(9);
  const boxes = await row
    .getByRole("cell")
    .evaluateAll((cells) =>
      cells.map((cell) => (({ x, y, right }) => ({ x, y, right }))(cell.getBoundingClientRect())),
    );
  const [, title, , , state] = boxes;
  expect(Math.abs((title?.y ?? 0) - (state?.y ?? 99))).toBeLessThan(8);
  expect(state?.x).toBeGreaterThan(title?.right ?? 999);
  // Cards lie below each other: their measured heights are their real ones.
  const tops = await page
    .locator(".table-body > [role=row]")
    .evaluateAll((rows) => rows.map((one) => one.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom]));
  for (const [at, [, bottom = 0]] of tops.slice(0, -1).entries()) {
    expect(Math.abs(bottom - (tops[at + 1]?.[0] ?? 0))).toBeLessThan(1.5);
  }
  await row.focus();
  for (const key of ["End", "ArrowUp", "Home", "ArrowDown"]) await page.keyboard.press(key);
  await page.locator('[role="row"][data-index="1"]:focus').waitFor();
  // Turned to the side the phone is wide enough for a table.
  await page.setViewportSize({ width: 844, height: 390 });
  await page.locator(".table-cards").waitFor({ state: "detached" });
  await expect.poll(async () => (await page.getByRole("row").nth(1).boundingBox())?.height).toBe(38);
}
