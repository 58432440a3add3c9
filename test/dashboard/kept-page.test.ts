import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import type { Faults } from "./faults.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

/** Fails unless the test sees an error on the console of the page. */
async function expectWatched(page: Page, faults: Faults): Promise<void> {
  await page.evaluate(() => console.error("said by the page"));
  await expect.poll(() => faults.list()).toMatchObject([expect.stringContaining("said by the page")]);
  faults.expect(/said by the page/);
}

describe("one after the other", () => {
  let first: Page;

  test("test harness reports errors of a dashboard page that the test changes", async ({ open, faults }) => {
    first = await open("/apis", { role: "viewer", colorScheme: "dark" });
    await expectWatched(first, faults);
    const second = await open("/apis");
    expect(second).not.toBe(first);
    await first.route("**/v2/**", (route) => route.abort());
    first.on("dialog", (dialog) => void dialog.accept("answered"));
    await first.emulateMedia({ media: "print" });
    faults.expect(/said after the test/);
    await first.evaluate(() => {
      setInterval(() => {
        localStorage.setItem("left", "behind");
        sessionStorage.setItem("left", "behind");
        console.error("said after the test");
      }, 1);
    });
  });

  test("test harness reuses the dashboard page without the changes of the previous test", async ({ open, faults }) => {
    const page = await open("/apis");
    expect(page).toBe(first);
    expect(page.context().pages()).toEqual([page]);
    await page.getByRole("button", { name: "Ada (admin)" }).waitFor();
    await page.getByRole("row").nth(1).waitFor();
    const left = () => ({
      stored: [localStorage.getItem("left"), sessionStorage.getItem("left")],
      isPrinted: matchMedia("print").matches,
    });
    expect(await page.evaluate(left)).toEqual({ stored: [null, null], isPrinted: false });
    expect(await page.evaluate(() => prompt("?"))).toBeNull();
    await expectWatched(page, faults);
  });

  test("test harness opens a new dashboard page for a test that requests the context", async ({
    context,
    open,
    faults,
  }) => {
    const page = await open("/apis");
    expect(page).not.toBe(first);
    expect(page.context()).toBe(context);
    await expectWatched(page, faults);
  });
});
