import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { expectAccessibleInBothThemes } from "./accessible.ts";
import { EVERY_WINDOW, type Opening, openWindow } from "./every-window.ts";
import { expectHarmless } from "./harmless.ts";
import { dashboardTest } from "./harness.ts";
import { type Made, makeObjects } from "./window-objects.ts";

const NARROW_PX = 375;
const WIDE = { width: 1280, height: 800 } as const;
/** A window with more stops than this is not gone around. */
const STOPS_MAX = 80;

/** Whether the focus is in the part of the page, and on what it is. */
const focusOf = (part: Locator): Promise<{ isInside: boolean; on: string }> =>
  part.evaluate((element) => ({
    isInside: element.contains(document.activeElement),
    on: document.activeElement?.outerHTML.slice(0, 160) ?? "nothing",
  }));

/** Returns what in the window has the focus, as soon as something has; `when` says in the error what came before. */
async function focusIn(window: Locator, when: string): Promise<string> {
  let focus = { isInside: false, on: "nothing" };
  const isInside = async () => {
    focus = await focusOf(window);
    return focus.isInside;
  };
  await waitFor("it", isInside, { everyMs: 20 }).catch(() => {
    throw new Error(`${when} the focus is on ${focus.on}`);
  });
  return focus.on;
}

const MARKUP = "<img src=x onerror=hacked=N>\"><script>hacked=N</script>'-hacked=N-'{{hacked=N}}";

/** Windows that are empty, or about no single object, show no stored text. */
const SHOWS_NOTHING =
  /^(create |the new |the menu of|the filters of|the only |set an|import|export|change the |switch |(rename|enable) a workspace)/;

/**
 * Tests each window of one part of the table. The stored names, descriptions and data look like markup and are as long as they may be, in
 * forms, in the matrix and its review, in manifests as YAML and in the audit log's values before and after.
 */
export function testWindows(of: keyof typeof EVERY_WINDOW): void {
  const test = dashboardTest();
  let made: Made;
  let count = 0;
  // Many names must be unique.
  const hostile = (_what: string, lengthMax: number): string =>
    MARKUP.replaceAll("N", String(++count)).padEnd(lengthMax, "W").slice(0, lengthMax);
  test.beforeAll(async ({ dashboard }) => {
    made = await makeObjects(dashboard, hostile);
  });
  test.for<Opening>(EVERY_WINDOW[of])(
    "dialog is accessible, keeps focus, closes by Escape, fits 375 px and shows stored scripts as text: $name",
    async (opening, { open }) => {
      await expectGoodWindow(await open(opening.at(made)), opening, made);
    },
  );
}

async function expectGoodWindow(page: Page, opening: Opening, made: Made): Promise<void> {
  const { kind = "dialog", isKept = false } = opening;
  const { window, opener } = await openWindow(page, opening, made);
  await expectHarmless(page, opening.name);
  if (!SHOWS_NOTHING.test(opening.name)) expect(await textsOf(page)).toContain("onerror=hacked=");
  if (kind === "dialog" || kind === "menu") await focusIn(window, "opened,");
  // While a list is open, the rest of the page is hidden from screen readers until the focus leaves the field of the list. axe accepts the
  // focus guards of a modal menu only if the menu covers none of the points at which axe looks for a modal element.
  if (kind === "list" || kind === "menu") await expectAccessibleInBothThemes(page, ["aria-hidden-focus"]);
  else await expectAccessibleInBothThemes(window);
  await expectInside(page, window, kind);
  await page.setViewportSize({ width: NARROW_PX, height: WIDE.height });
  await expectFits(window);
  await page.setViewportSize(WIDE);
  await page.keyboard.press("Escape");
  if (isKept) {
    await window.waitFor();
    expect(await focusOf(window)).toMatchObject({ isInside: true });
    const close = window.getByRole("button", { name: "Close" });
    await close.focus();
    await close.press("Enter");
  }
  await window.waitFor({ state: "hidden" });
  await expect
    .poll(() => opener.evaluate((element) => element === document.activeElement || document.activeElement?.outerHTML))
    .toBe(true);
  if (kind === "list") {
    await page.keyboard.press("ArrowDown");
    await page.getByRole("listbox").waitFor();
    await page.keyboard.press("Tab");
    await page.getByRole("listbox").waitFor({ state: "hidden" });
    expect(await page.locator("[aria-hidden=true] :focus").count()).toBe(0);
  }
}

const textsOf = (page: Page): Promise<string> =>
  page.evaluate(() =>
    [
      document.body.textContent,
      ...[...document.querySelectorAll("input, textarea")].map((one) => (one as HTMLInputElement).value),
    ].join(" "),
  );

/** The keys that go around in a window leave the focus in it. */
async function expectInside(page: Page, window: Locator, kind: NonNullable<Opening["kind"]> | "dialog"): Promise<void> {
  const stays = async (press: string): Promise<string> => {
    await page.keyboard.press(press);
    // At an end the focus is for a moment on what leads it to the other.
    return await focusIn(window, `after ${press}`);
  };
  switch (kind) {
    case "dialog": {
      for (const press of ["Tab", "Shift+Tab"]) {
        const first = (await focusOf(window)).on;
        let stops = 1;
        while ((await stays(press)) !== first && stops < STOPS_MAX) stops += 1;
        expect(stops, `${press} goes around`).toBeLessThan(STOPS_MAX);
      }
      return;
    }
    case "menu":
      for (const press of ["ArrowDown", "ArrowUp", "ArrowUp", "End", "Home"]) await stays(press);
      return;
    case "popover":
      await stays("Tab");
      return;
    case "list": {
      await page.keyboard.press("ArrowDown");
      const active = page.locator(":focus");
      expect(await active.getAttribute("role")).toBe("combobox");
      expect(await active.getAttribute("aria-activedescendant")).not.toBeNull();
    }
  }
}

/** Nothing of a window is beyond the edge of the page, or of the window itself but for what scrolls by itself. */
async function expectFits(window: Locator): Promise<void> {
  // What is placed beside its opener follows when that has moved.
  await expect.poll(() => beyondEdges(window)).toEqual([]);
}

const beyondEdges = (window: Locator): Promise<string[]> =>
  window.evaluate((element) => {
    const within = (rect: DOMRect, left: number, right: number) => rect.left >= left - 1 && rect.right <= right + 1;
    const room = document.documentElement.clientWidth;
    const found: string[] = [];
    if (!within(element.getBoundingClientRect(), 0, room)) found.push(`the window: ${element.outerHTML.slice(0, 160)}`);
    if (document.documentElement.scrollWidth > room) found.push(`the page: ${document.documentElement.scrollWidth} px`);
    const isOwnScroller = (one: Element): boolean =>
      one !== element &&
      one.matches("pre, [tabindex='0'], .plot *, .input") &&
      getComputedStyle(one).overflowX !== "visible";
    const { left, right } = element.getBoundingClientRect();
    const walk = (one: Element): void => {
      for (const child of one.children) {
        // Seen by screen readers alone, it takes no room.
        if (child.matches(".unseen") || !child.checkVisibility()) continue;
        if (!within(child.getBoundingClientRect(), left, right)) found.push(child.outerHTML.slice(0, 160));
        else if (!isOwnScroller(child)) walk(child);
      }
      // A text is wider than what it stands in, or a scroller that is none by design.
      const isCut = ["hidden", "clip"].includes(getComputedStyle(one).overflowX);
      if (one.clientWidth > 0 && one.scrollWidth > one.clientWidth + 1 && !isCut) {
        found.push(`wider than it is: ${one.outerHTML.slice(0, 160)}`);
      }
    };
    walk(element);
    return found;
  });
