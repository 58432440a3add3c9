import type { Page } from "playwright-core";
import { expect } from "vitest";
import { expectNoSideways } from "./accessible.ts";

/** Fails when a stored text became more than a text in the page as it is now: ran, made an element, or broke the page. */
export async function expectHarmless(page: Page, where: string): Promise<void> {
  await page.waitForLoadState("networkidle").catch(() => undefined);
  const found = await page.evaluate(() => {
    const links = [...document.querySelectorAll("a[href], form[action], iframe[src], img[src], object, embed, base")];
    return {
      mark: (globalThis as { hacked?: unknown }).hacked,
      // What a page has of its own comes from this server.
      foreign: links
        .filter((one) => {
          const address = one.getAttribute("href") ?? one.getAttribute("src") ?? one.getAttribute("action") ?? "";
          return new URL(address, location.href).origin !== location.origin && !address.startsWith("blob:");
        })
        .map((one) => one.outerHTML.slice(0, 200)),
      scripts: [...document.scripts].filter(({ src }) => src === "").length,
      handlers: [...document.querySelectorAll("*")].filter((one) =>
        one.getAttributeNames().some((name) => name.startsWith("on")),
      ).length,
      title: document.querySelector("main h1")?.textContent ?? "",
    };
  });
  expect(found, where).toMatchObject({ mark: undefined, foreign: [], scripts: 0, handlers: 0 });
  expect(found.title, where).not.toBe("");
  await expectNoSideways(page);
}
