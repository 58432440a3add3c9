import { describe, expect } from "vitest";
import { EVERY_PAGE } from "./every-page.ts";
import { dashboardTest } from "./harness.ts";
import { type Made, makeObjects } from "./window-objects.ts";

/*
 * Somebody who is not signed in: each address leads to signing in and nowhere else, nothing of the store is sent, and the address stays, so that it
 * is the same page that opens once the person is signed in. With a provider it is sign-in-provider.test.ts that holds where the way back leads. What the API
 * answers a stranger is held for each procedure in api-server/test/required-permissions.test.ts, and with a session that was made up in roles.test.ts.
 */

const test = dashboardTest();
const SECRET = "nobody-else-knows";
let made: Made;
test.beforeAll(async ({ dashboard }) => {
  let count = 0;
  made = await makeObjects(dashboard, (what, lengthMax) => `${what} ${SECRET} ${++count}`.slice(0, lengthMax));
});

/** Pages of one thing, and one whose address says what is open. */
const DETAILS: readonly ((made: Made) => string)[] = [
  ({ apiId }) => `/apis/${apiId}`,
  ({ keyId }) => `/keys/${keyId}`,
  ({ namespaceId }) => `/ratelimits/${namespaceId}`,
  ({ policyId }) => `/policies/${policyId}`,
  ({ rootKeyId }) => `/root-keys?rootKey=${rootKeyId}`,
  ({ identityId }) => `/identities/${identityId}`,
  () => "/usage/sql",
];
const ADDRESSES = [...EVERY_PAGE.map((path) => () => path), ...DETAILS];

describe("an unauthenticated user", () => {
  test("every page redirects an unauthenticated user to sign-in without showing data", async ({
    dashboard,
    context,
    faults,
  }) => {
    const page = await context.newPage();
    const responses: Promise<string>[] = [];
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    page.on("response", (response) => responses.push(response.text().catch(() => "")));
    for (const address of ADDRESSES) {
      const url = `${dashboard.url}/dashboard${address(made)}`;
      await page.goto(url);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await page.waitForLoadState("networkidle");
      expect(page.url()).toBe(url);
      expect(await page.getByRole("navigation").count(), url).toBe(0);
      expect(await page.locator("h1").allTextContents(), url).toEqual(["Sign in"]);
    }
    expect(asked.filter((path) => path.startsWith("/v2/"))).toEqual([]);
    const sent = (await Promise.all(responses)).filter((text) => text !== "");
    expect(sent.length).toBeGreaterThan(ADDRESSES.length);
    expect(sent.filter((text) => text.includes(SECRET))).toEqual([]);
    expect(faults.list()).toEqual([]);
  });

  test("sign-in in another tab restores each requested page", async ({ dashboard, open, context }) => {
    const wanted = ADDRESSES.map((address) => new URL(`${dashboard.url}/dashboard${address(made)}`));
    const page = await context.newPage();
    await page.goto(String(wanted[0]));
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await (await open("/installation")).close();
    for (const { href, pathname, searchParams } of wanted) {
      await page.goto(href);
      await page.locator("main h1").filter({ hasNotText: "Sign in" }).first().waitFor();
      const shown = new URL(page.url());
      expect(shown.pathname).toBe(pathname);
      for (const [name, value] of searchParams) expect(shown.searchParams.get(name)).toBe(value);
    }
  });
});
