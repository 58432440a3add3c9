import { describe, expect } from "vitest";
import { expectPresentable } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

const DAY_MS = 86_400_000;

/** A key with everything: the same for all tests of this file. */
async function fullKey(dashboard: Dashboard) {
  const { call } = dashboard;
  const [known] = await call("admin.searchKeys", { name: "Whole key" });
  if (known !== undefined) return { keyId: known.keyId, apiId: known.apiId };
  const { apiId } = await call("apis.createApi", { name: "details" });
  await call("permissions.createRole", { name: "detail-role", permissions: ["role.read", "both.read"] });
  const limit = { limit: 50, duration: 30 * DAY_MS, autoApply: true };
  await call("identities.createIdentity", {
    externalId: "detail.owner",
    ratelimits: [
      { name: "shared", ...limit },
      { name: "own", ...limit },
    ],
  });
  const { keyId, key } = await call("keys.createKey", {
    apiId,
    name: "Whole key",
    externalId: "detail.owner",
    meta: { plan: "pro" },
    credits: { remaining: 100, refill: { interval: "monthly", amount: 100, refillDay: 31 } },
    ratelimits: [{ name: "own", ...limit }],
    roles: ["detail-role"],
    permissions: ["both.read", "direct.read"],
  });
  for (let n = 0; n < 3; n++) await call("keys.verifyKey", { key, tags: [`n=${n}`] });
  return { keyId, apiId };
}

describe("a key", () => {
  test("key page shows state, credits, counters and sources of permissions", async ({ dashboard, open }) => {
    const { keyId } = await fullKey(dashboard);
    const page = await open(`/keys/${keyId}`);
    await page.getByText("A request now would be admitted").waitFor();
    const row = (name: string) =>
      page.getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
    expect(await row("shared").getByRole("cell").allTextContents()).toEqual([
      "identity, shared",
      "3",
      "50",
      expect.stringMatching(/^30 d, ends in /),
    ]);
    expect(await row("own").getByRole("cell").allTextContents()).toEqual([
      "key",
      "3",
      "50",
      expect.stringMatching(/^30 d, ends in /),
    ]);
    expect(await row("own replaced").getByRole("cell").first().textContent()).toBe("identity, shared");
    expect(await row("both.read").getByRole("cell").allTextContents()).toEqual(["direct, role detail-role"]);
    expect(await row("role.read").getByRole("cell").allTextContents()).toEqual(["role detail-role"]);
    expect(await row("direct.read").getByRole("cell").allTextContents()).toEqual(["direct"]);
    await page.getByText("100 on day 31 of each month, at midnight UTC").waitFor();
    await page.getByText("97", { exact: true }).waitFor();
  });

  test("key page shows recent requests and usage by outcome", async ({ dashboard, open }) => {
    const { keyId } = await fullKey(dashboard);
    const page = await open(`/keys/${keyId}`);
    const requests = page.getByLabel("Last requests", { exact: true }).getByRole("row");
    await expect
      .poll(
        async () => {
          await page.getByRole("button", { name: "Reload" }).click();
          return requests.count();
        },
        { timeout: 20_000, interval: 1000 },
      )
      .toBe(4);
    await page.getByText("n=2").waitFor();
    await page.getByRole("cell", { name: "valid", exact: true }).first().waitFor();
    // Counts are made from what is stored, a little later; the page asks for them every ten minutes.
    const figure = page.getByRole("figure", { name: "Verifications of the key by outcome" });
    await expect
      .poll(
        async () => {
          await page.reload();
          await page.getByRole("heading", { name: "Last requests" }).waitFor();
          return figure
            .locator('[data-series="VALID"] strong')
            .textContent({ timeout: 4000 })
            .catch(() => null);
        },
        { timeout: 60_000, interval: 1000 },
      )
      .toBe("3");
  });

  test("key page lists all problems of a key, the decisive one first", async ({ dashboard, open }) => {
    const { apiId } = await fullKey(dashboard);
    const { keyId } = await dashboard.call("keys.createKey", {
      apiId,
      name: "Bad key",
      enabled: false,
      expires: Date.now() - DAY_MS,
      credits: { remaining: 0 },
    });
    const page = await open(`/keys/${keyId}`);
    await page.getByText("A request now would be rejected: disabled").waitFor();
    const reasons = page
      .getByRole("list", { name: "Reasons for the rejection; the first one decides" })
      .getByRole("listitem");
    expect(await reasons.allTextContents()).toEqual([
      expect.stringContaining("disabled"),
      expect.stringContaining("expired"),
      expect.stringContaining("credits are used up"),
    ]);
    await dashboard.call("keys.deleteKey", { keyId });
    await page.reload();
    await page.getByText("A request now would be rejected: not found").waitFor();
    const change = page.getByRole("button", { name: "Change", exact: true });
    expect(await change.getAttribute("title")).toBe("The key is deleted.");
  });

  test("page of a missing key shows what to do", async ({ open, faults }) => {
    faults.expect(/404/);
    const page = await open("/keys/key_0000000000000000");
    await page.getByText("There is no key key_0000000000000000 in the workspace.").waitFor();
    await page.getByText("The object may have been deleted: go back to the list.").waitFor();
  });

  test("page of a managed key is locked and names its manifest", async ({ dashboard, open }) => {
    const { apiId } = await fullKey(dashboard);
    const { keyId } = await dashboard.call("keys.createKey", { apiId, name: "Managed key" });
    await inDatabase(dashboard, "update keys set manager = 'main/ApiKey/shop/billing' where id = $1", [keyId]);
    const page = await open(`/keys/${keyId}`);
    await page.getByText("A manifest manages this object.").waitFor();
    await page.getByText("kubectl edit -n shop apikey.postern.dev/billing").waitFor();
    for (const name of ["Change", "Disable"]) {
      const button = page.getByRole("button", { name, exact: true });
      expect(await button.getAttribute("title")).toBe("Managed by main/ApiKey/shop/billing: change its manifest.");
    }
  });

  test("key page shows a viewer which permission is missing", async ({ dashboard, open }) => {
    const { keyId } = await fullKey(dashboard);
    const page = await open(`/keys/${keyId}`, { role: "viewer" });
    await page.getByText("A request now would be admitted").waitFor();
    const change = page.getByRole("button", { name: "Change", exact: true });
    expect(await change.getAttribute("title")).toContain("api.*.update_key");
    await page.getByRole("button", { name: "More", exact: true }).click();
    for (const [name, tuple] of [
      ["Roles and permissions", "update_key"],
      ["Credits", "update_key"],
      ["Reroll", "create_key"],
      ["Delete", "delete_key"],
    ] as const) {
      const item = page.getByRole("menuitem", { name });
      expect(await item.textContent()).toContain(`api.*.${tuple}`);
    }
  });

  test("key page is accessible and fits every window size", async ({ dashboard, open }) => {
    const { keyId } = await fullKey(dashboard);
    const page = await open(`/keys/${keyId}`);
    await page.getByText("A request now would be admitted").waitFor();
    await expectPresentable(page);
  });
});
