import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";

/** A page that needs more presses than this to be gone through is not one for the keyboard. */
const PRESSES_MAX = 150;

/**
 * Fails when Tab does not reach everything in the page that can be operated with a mouse. A group that arrows walk through (rows of a table, their
 * checkboxes, tabs) counts as reached by one of it.
 */
export async function expectReachable(page: Page): Promise<void> {
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    const isShown = (element: Element) => element.checkVisibility({ visibilityProperty: true });
    const controls =
      "a[href], button, input, select, textarea, summary, [role=button], [role=tab], [role=menuitem], [role=row][tabindex]";
    let count = 0;
    for (const element of document.querySelectorAll(controls)) {
      if (isShown(element) && !element.matches(":disabled, [inert] *, [aria-hidden=true]"))
        element.setAttribute("data-to-reach", String(count++));
    }
  });
  for (let presses = 0; presses < PRESSES_MAX; presses++) {
    await page.keyboard.press("Tab");
    const isAtEnd = await page.evaluate(() => {
      const { activeElement } = document;
      if (activeElement === null || activeElement === document.body || activeElement.hasAttribute("data-was-here"))
        return true;
      activeElement.setAttribute("data-was-here", "");
      activeElement.removeAttribute("data-to-reach");
      const group = activeElement.closest("[role=tablist], [role=table], [role=grid], [role=radiogroup], [role=menu]");
      const { role } = activeElement as HTMLElement & { role: string | null };
      const ofRow = "[data-index] input[type=checkbox]";
      const others = activeElement.matches(ofRow) ? ofRow : `[role=${role ?? "none"}]`;
      for (const other of group?.querySelectorAll(others) ?? []) other.removeAttribute("data-to-reach");
      return false;
    });
    if (isAtEnd) break;
  }
  const left = await page.evaluate(() => {
    const elements = [...document.querySelectorAll("[data-to-reach]")];
    for (const element of document.querySelectorAll("[data-was-here]")) element.removeAttribute("data-was-here");
    // Where a row is one stop, what stands in the others is reached from them.
    return elements
      .filter((element) => element.closest("[role=row][tabindex='-1']") === null)
      .map((element) => element.outerHTML.slice(0, 160));
  });
  expect(left).toEqual([]);
}

/** Goes by Tab, or by Shift and Tab, to what is to be operated. Fails when it is not reached. */
export async function tabTo(page: Page, target: Locator, press: "Tab" | "Shift+Tab" = "Tab"): Promise<void> {
  await target.waitFor();
  const isThere = () => target.evaluate((element) => element.matches(":focus"));
  for (let presses = 0; !(await isThere()); presses += 1) {
    expect(presses, `${press} reaches ${String(target)}`).toBeLessThan(PRESSES_MAX);
    await page.keyboard.press(press);
  }
}
