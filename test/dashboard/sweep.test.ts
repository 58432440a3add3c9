import type { Page } from "playwright-core";
import { describe } from "vitest";
import { expectAccessible, expectPresentable } from "./accessible.ts";
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
    await expectReachable(page);
    await expectAccessible(page);
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
