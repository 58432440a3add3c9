import { describe, expect } from "vitest";
import { expectAccessible } from "./accessible.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

describe("the shell", () => {
  test("dashboard shell supports the keyboard, with skip link and title focus", async ({ open }) => {
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

  test("dashboard shell shows an unknown URL and keeps the navigation", async ({ open }) => {
    const page = await open("/no/such/page");
    await page.getByRole("heading", { name: "No such page" }).waitFor();
    await page.getByRole("link", { name: "Go to the first page" }).click();
    await page.waitForURL((url) => !url.pathname.endsWith("/page"));
    await expectAccessible(page);
  });

  test("dashboard shell remembers the chosen theme", async ({ open }) => {
    const page = await open("/identities", { colorScheme: "light" });
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await background();
    await page.getByLabel("Theme").selectOption("dark");
    const dark = await background();
    expect(dark).not.toBe(light);
    await page.reload();
    await page.locator("main h1").waitFor();
    expect(await background()).toBe(dark);
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
    await context.route(cutOff, (route) => route.abort());
    await page.getByRole("searchbox").first().fill("stays");
    await page.getByText("The server has not responded since").waitFor();
    await page.getByText("stays-shown").waitFor();
    await expectAccessible(page);
    await context.unroute(cutOff);
    await page.getByRole("button", { name: "Try now" }).click();
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

  test("dashboard shell explains a missing page file while other pages open", async ({ open, context, faults }) => {
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
