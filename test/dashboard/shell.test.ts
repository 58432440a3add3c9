import { describe, expect } from "vitest";
import { expectAccessible } from "./accessible.ts";
import { EVERY_PAGE } from "./every-page.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

describe("the shell", () => {
  test("dashboard shell supports the keyboard: it has a skip link, and focuses the title of a new page", async ({
    open,
  }) => {
    const page = await open("/identities");
    const focused = () => page.evaluate(() => document.activeElement?.textContent ?? "");
    await page.keyboard.press("Tab");
    expect(await focused()).toBe("Skip to the page");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => location.hash === "#page");
    await page.keyboard.press("Tab");
    expect(await page.evaluate(() => document.activeElement?.closest("main") !== null)).toBe(true);
    const link = page.getByRole("navigation", { name: "Pages" }).getByRole("link").first();
    await page.goto(`${new URL(page.url()).origin}/dashboard/nowhere`);
    await link.focus();
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.matches("main h1"));
    expect(await page.title()).toMatch(/ · Postern$/);
  });

  test("dashboard shell reports an unknown URL and keeps the navigation", async ({ open }) => {
    const page = await open("/no/such/page");
    await page.getByRole("heading", { name: "No such page" }).waitFor();
    await page.getByRole("link", { name: "Go to the first page" }).click();
    await page.waitForURL((url) => !url.pathname.endsWith("/page"));
    await expectAccessible(page);
  });

  test("dashboard shows no other workspace at the URL of an unknown or deleted one", async ({ dashboard, open }) => {
    const { workspaceId } = await dashboard.call("admin.createWorkspace", { name: "soon-deleted" });
    await dashboard.call("apis.createApi", { name: "api of the default workspace" });
    const page = await open("/apis");
    const workspace = new URL(page.url()).searchParams.get("workspace");
    expect(workspace).toMatch(/^ws_/);
    await page.getByRole("row").filter({ hasText: "api of the default workspace" }).waitFor();
    for (const wanted of ["ws_unknown", "__proto__", workspaceId.slice(0, -1)]) {
      await page.goto(`${dashboard.url}/dashboard/apis?workspace=${wanted}`);
      await page.getByText(`The workspace ${wanted} does not exist, or you have no role in it.`).waitFor();
      expect(await page.getByText("api of the default workspace").count()).toBe(0);
    }
    await expectAccessible(page);
    await page.getByRole("link", { name: "default", exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get("workspace") === workspace);
    await page.locator("main h1").first().waitFor();
  });

  test("dashboard pages ignore search parameters with invalid values", async ({ dashboard, open, faults }) => {
    // A well-formed parameter may name an object that does not exist.
    faults.expect(/\b40[04]\b/);
    const page = await open("/apis");
    const names = ["range", "from", "to", "api", "key", "owner", "outcome", "search", "roles", "identity", "rootKey"];
    const more = [
      "state",
      "environment",
      "q",
      "by",
      "credits",
      "managed",
      "role",
      "permission",
      "event",
      "row",
      "keyId",
    ];
    const values = ["999d", "-1", "1e400", "[]", '{"toString":1}', "null", "true", '"', "constructor", "\u0000"];
    const details = ["/usage/sql", "/apis/none", "/keys/none", "/policies/none", "/ratelimits/none", "/workspaces"];
    for (const path of [...EVERY_PAGE, ...details]) {
      for (const shift of [0, 3]) {
        const search = [...names, ...more].map(
          (name, i) => `${name}=${encodeURIComponent(values[(i + shift) % values.length] ?? "")}`,
        );
        await page.goto(`${dashboard.url}/dashboard${path}?${search.join("&")}`);
        await page.locator("main h1").first().waitFor();
        await page.waitForLoadState("networkidle");
        expect(await page.getByText(/This page failed|internal error of the dashboard/).count(), path).toBe(0);
      }
    }
  }, 120_000);

  test("dashboard shell remembers the chosen theme", async ({ open }) => {
    const page = await open("/identities", { colorScheme: "light" });
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await background();
    await page.getByRole("button", { name: "Ada" }).click();
    await page.getByLabel("Theme").selectOption("dark");
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.locator("main h1").waitFor();
    expect(await background()).toBe(dark);
    await page.getByRole("button", { name: "Ada" }).click();
    await page.getByLabel("Theme").selectOption("system");
    expect(await background()).toBe(light);
    await page.emulateMedia({ colorScheme: "dark" });
    expect(await background()).toBe(dark);
  });

  test("dashboard shell collapses the navigation on small screens", async ({ open }) => {
    const page = await open("/identities", { width: 800 });
    const navigation = page.getByRole("navigation", { name: "Pages" });
    expect(await navigation.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Menu" }).click();
    await navigation.waitFor();
    await expectAccessible(page);
    await navigation.getByRole("link", { name: "Identities" }).click();
    await navigation.waitFor({ state: "hidden" });
  });

  test("dashboard shell shows a lost connection, keeps data and recovers", async ({
    open,
    context,
    faults,
    dashboard,
  }) => {
    faults.expect(/ERR_FAILED|ERR_CONNECTION|ERR_INTERNET/);
    await dashboard.call("identities.createIdentity", { externalId: "stays-shown" });
    const page = await open("/identities");
    await page.getByText("stays-shown").waitFor();
    const cutOff = (url: URL): boolean => /^\/(v2|dashboard\/session)/.test(url.pathname);
    let requests = 0;
    await context.route(cutOff, (route) => {
      requests += 1;
      return route.abort();
    });
    await page.getByRole("searchbox").first().fill("stays");
    await page.getByText("The server has not responded since").waitFor();
    await page.getByText("stays-shown").waitFor();
    await expectAccessible(page);
    // It stays in sight when a long page is scrolled.
    const isInSight = await page.evaluate(() => {
      document.querySelector("main")?.style.setProperty("min-height", "300vh");
      scrollTo(0, document.documentElement.scrollHeight);
      const shown = document.querySelector(".notices .notice");
      const { x, y, width, height } = shown?.getBoundingClientRect() ?? new DOMRect();
      return scrollY > 0 && shown?.contains(document.elementFromPoint(x + width / 2, y + height / 2)) === true;
    });
    expect(isInSight).toBe(true);
    const before = requests;
    await page.getByRole("button", { name: "Try now" }).click();
    await expect.poll(() => requests).toBeGreaterThan(before);
    await context.unroute(cutOff);
    await page.getByText("The server has not responded since").waitFor({ state: "detached" });
  });

  test("dashboard shell keeps the page and its input when the session ends", async ({ open, context, faults }) => {
    faults.expect(/401/);
    const page = await open("/identities");
    const field = page.getByRole("searchbox").first();
    await context.clearCookies();
    await field.fill("typed before it ended");
    await page.getByText("Your session has ended").first().waitFor();
    expect(await field.inputValue()).toBe("typed before it ended");
    await expectAccessible(page);
  });

  test("dashboard shell explains that the file of a page is missing, and other pages still open", async ({
    open,
    context,
    faults,
  }) => {
    faults.expect(/list-|dynamically imported/);
    await context.route("**/assets/list-*.js", (route) => route.fulfill({ status: 404 }));
    const page = await open("/identities");
    await page.getByRole("heading", { name: "This page could not be loaded" }).waitFor();
    await page.getByRole("button", { name: "Reload" }).waitFor();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
  });
});

test("dashboard in a cross-site frame stays empty", async ({ dashboard }) => {
  const framed = await (await dashboard.browser.newContext()).newPage();
  await framed.route("http://attacker.test/**", (route) =>
    route.fulfill({ contentType: "text/html", body: `<iframe src="${dashboard.url}/dashboard/"></iframe>` }),
  );
  await framed.goto("http://attacker.test/");
  const inner = framed.frames().find((frame) => frame !== framed.mainFrame());
  expect(await inner?.locator("#root").count()).toBe(0);
  await framed.context().close();
});
