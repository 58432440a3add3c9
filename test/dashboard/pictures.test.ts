import { existsSync, readFileSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { describe, expect } from "vitest";
import { NAVIGATION } from "../../dashboard/shell/navigation.ts";
import { inDatabase } from "./database.ts";
import { dashboardTest } from "./harness.ts";
import { pictureFile, takePicture } from "./picture.ts";
import { fillExample } from "./picture-data.ts";

/*
 * The pictures of docs/dashboard.md: `npm run pictures` takes them again, of a workspace with the same names and counts each time. Otherwise this test holds
 * the document and its pictures against the pages that there are.
 */

const test = dashboardTest();
const TAKES = process.env.PICTURES === "1";
const PICTURE_BYTES_MAX = 80_000;

const TEXT = readFileSync(resolve(import.meta.dirname, "../../docs/dashboard.md"), "utf8");
const PAGES = NAVIGATION.flatMap(({ entries }) => entries.map(({ to, label }) => ({ path: String(to), label })));

/** File name of the picture of a page. */
const nameOf = (path: string): string => (path === "/" ? "home" : path.slice(1).replaceAll("/", "-"));

/** What stands behind the address of a page, where that shows more than an empty form. */
const searches = new Map<string, string>();

if (TAKES) {
  test.beforeAll(async ({ dashboard }) => {
    const { keyId } = await fillExample(dashboard);
    searches.set("/explain", `?keyId=${keyId}`);
  });
}

describe.each(PAGES)("$label", ({ path, label }) => {
  test("documentation screenshot matches its page", async ({ open, dashboard }) => {
    const page = await open(`${path}${searches.get(path) ?? ""}`, { width: 1280, height: 720 });
    expect(await page.title()).toBe(`${label} · Postern`);
    if (!TAKES) return;
    // The signed-in person's link names the user and host that made it.
    await inDatabase(dashboard, "update sessions set link_made_by = 'Ada Lovelace' where link_made_by like '%@%'");
    await page.reload();
    await page.locator("[aria-busy=true], .skeleton").first().waitFor({ state: "detached" });
    await page.waitForLoadState("networkidle");
    await takePicture(page, nameOf(path));
  });

  test("screenshot page has a section in docs/dashboard.md", () => expect(TEXT).toContain(`\n## ${label}\n`));
});

test("documentation screenshots exist, are small and show existing pages", () => {
  const names = [...TEXT.matchAll(/\]\(pictures\/([\w-]+)\.webp\)/g)].map(([, name]) => name ?? "");
  expect(names.length).toBeGreaterThan(0);
  for (const name of names) {
    expect(PAGES.map(({ path }) => nameOf(path))).toContain(name);
    expect(existsSync(pictureFile(name)), name).toBe(true);
    expect(statSync(pictureFile(name)).size).toBeLessThan(PICTURE_BYTES_MAX);
  }
});
