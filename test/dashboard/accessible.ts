import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { AxeResults, RunOptions } from "axe-core";
import type { Locator, Page } from "playwright-core";
import { expect } from "vitest";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Fails when axe finds something serious or critical in the page as it is now, but for what the rules `except` say. */
export async function expectAccessible(page: Page, except: readonly string[] = []): Promise<void> {
  expect(await graveViolations(page.locator(":root"), {}, except)).toEqual([]);
}

/**
 * Checks the page, or a part of it, in both themes. The dark theme differs from the light one only in colors, so only the contrast is checked
 * in it.
 */
export async function expectAccessibleInBothThemes(
  part: Page | Locator,
  except: readonly string[] = [],
): Promise<void> {
  const [page, root] = "page" in part ? [part.page(), part] : [part, part.locator(":root")];
  await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
  expect(await graveViolations(root, {}, except)).toEqual([]);
  await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
  expect(await graveViolations(root, { runOnly: ["color-contrast"] }, except)).toEqual([]);
}

async function graveViolations(root: Locator, options: RunOptions, except: readonly string[]): Promise<object[]> {
  const page = root.page();
  // The page's policy does not apply to the protocol of the browser. Parsing takes a fifth of a second, so it happens once per page.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(AXE);
  const violations = await root.evaluate(async (element, options) => {
    const { axe } = globalThis as unknown as {
      axe: { run: (root: Node, options: RunOptions) => Promise<AxeResults> };
    };
    const { violations } = await axe.run(element === document.documentElement ? document : element, {
      ...options,
      resultTypes: ["violations"],
    });
    return violations.map(({ id, impact, help, nodes }) => ({
      id,
      impact,
      help,
      where: nodes.slice(0, 5).map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary}`),
    }));
  }, options);
  const isGrave = (impact: string | null | undefined) => impact === "serious" || impact === "critical";
  return violations.filter(({ id, impact }) => isGrave(impact) && !except.includes(id));
}

/** Fails when the page itself, not a part of it, can be scrolled to the side. */
export async function expectNoSideways(page: Page): Promise<void> {
  const { wide, room, widest } = await page.evaluate(async () => {
    // Plots follow the width of the window in the next frame.
    for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve));
    const root = document.documentElement;
    // What a part of the page cuts off or scrolls does not make the page wide.
    const isShut = (element: Element): boolean => {
      for (let at = element.parentElement; at !== null && at !== document.body; at = at.parentElement) {
        if (getComputedStyle(at).overflowX !== "visible") return true;
      }
      return false;
    };
    const beyond = [...document.querySelectorAll("body *")].filter(
      (element) => element.getBoundingClientRect().right > root.clientWidth + 1 && !isShut(element),
    );
    return {
      wide: root.scrollWidth,
      room: root.clientWidth,
      widest: beyond.slice(0, 3).map((element) => element.outerHTML.slice(0, 160)),
    };
  });
  expect(wide, `wider than the window by ${wide - room} px: ${widest.join("\n")}`).toBeLessThanOrEqual(room);
}

const WIDTHS = [375, 768, 1280, 1920] as const;

/** Fails unless the page is accessible in both themes and has no horizontal scrollbar on phones, tablets and wide screens. */
export async function expectPresentable(page: Page): Promise<void> {
  await expectAccessibleInBothThemes(page);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 800 });
    await expectNoSideways(page);
  }
}
