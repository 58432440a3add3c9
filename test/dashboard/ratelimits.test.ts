import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { aRatelimitEvent } from "../builders/usage-event.ts";
import { expectPresentable } from "./accessible.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";
import { storeUsage } from "./usage-events.ts";

const test = dashboardTest();

const HOUR_MS = 3_600_000;
const HOSTILE = "<img src=x onerror=alert(1)> \"'& 支付 \\";
let made = 0;

/** A namespace of this test alone, with these limits by identifier. */
async function aNamespace({ call }: Dashboard, limits: Readonly<Record<string, number>> = {}) {
  made += 1;
  const name = `space-${made}`;
  const { namespaceId } = await call("ratelimit.createNamespace", { name });
  for (const [identifier, limit] of Object.entries(limits)) {
    await call("ratelimit.setOverride", { namespace: name, identifier, limit, duration: HOUR_MS });
  }
  return { name, namespaceId, path: `/ratelimits/${namespaceId}` };
}

describe("namespaces", () => {
  test("dashboard creates, finds and deletes rate limit namespaces with typed confirmation", async ({
    dashboard,
    open,
  }) => {
    const page = await open("/ratelimits");
    await page.getByRole("button", { name: "Create a namespace" }).click();
    await page.getByLabel("Name", { exact: true }).fill("email.outbound");
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "email.outbound" }).waitFor();
    await page.getByText("No overrides.").waitFor();

    await page.getByRole("link", { name: "Rate limits" }).click();
    await page.getByLabel("Name or id contains").fill("OUTBOUND");
    await page.getByRole("link", { name: "email.outbound" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByLabel(/^Type/).fill("email.outbound");
    await page.getByRole("button", { name: "Delete the namespace" }).click();
    await page.getByRole("heading", { name: "Rate limits" }).waitFor();
    expect(await dashboard.call("admin.listNamespaces", { search: "email.outbound" })).toEqual([]);
  });

  test("managed rate limit namespace is locked and names its manifest", async ({ open }) => {
    const page = await open("/ratelimits?search=public-api");
    await page.getByText("RatelimitNamespace shop/public-api").waitFor();
    await page.getByRole("link", { name: "public-api" }).click();
    await page.getByText("kubectl edit -n shop ratelimitnamespace.postern.dev/public-api").waitFor();
    const remove = page.getByRole("button", { name: "Delete" });
    expect(await remove.getAttribute("title")).toBe("A manifest manages this namespace: delete the manifest.");
  });
});

describe("overrides", () => {
  test("dashboard creates, updates and deletes overrides", async ({ dashboard, open }) => {
    const { name, path } = await aNamespace(dashboard);
    const page = await open(path);
    await page.getByRole("button", { name: "Set an override" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Identifier").fill("premium_*");
    await page.keyboard.press("Tab");
    await dialog.getByRole("button", { name: "1,000 per hour" }).click();
    expect(await dialog.getByLabel("Limit").inputValue()).toBe("1000");
    await dialog.getByLabel("Window").fill("1h 30m");
    const outcome = dialog.locator(".form-outcome");
    const willBe = "Allows each identifier that matches premium_* 1,000 requests per 1 h 30 min.";
    await expect.poll(() => outcome.textContent()).toBe(willBe);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "hidden" });
    const stored = () => dashboard.call("admin.listOverrides", { namespace: name });
    // The same again would replace it.
    await page.getByRole("button", { name: "Set an override" }).click();
    await dialog.getByLabel("Identifier").fill("premium");
    await page.getByRole("option", { name: "premium_*" }).click();
    await dialog.getByLabel("Limit").fill("0");
    await expect
      .poll(() => outcome.textContent())
      .toBe(
        "Denies each identifier that matches premium_* all requests. Replaces the override of 1,000 requests per 1 h 30 min.",
      );
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Discard" }).click();
    expect(await stored()).toMatchObject([{ identifier: "premium_*", limit: 1000, duration: 5_400_000, async: false }]);

    await page.getByRole("row", { name: /premium_/ }).click();
    await dialog.getByLabel("Limit").fill("0");
    await dialog.getByLabel("Counted in each process").check();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "hidden" });
    expect(await stored()).toMatchObject([{ limit: 0, duration: 5_400_000, async: true }]);

    await page.getByRole("row", { name: /premium_/ }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("No overrides.").waitFor();
    expect(await stored()).toEqual([]);
  });

  test("managed override is locked and shows the YAML of the entered values", async ({ dashboard, open }) => {
    const [namespace] = await dashboard.call("admin.listNamespaces", { search: "public-api" });
    const page = await open(`/ratelimits/${namespace?.id}`);
    await page.getByRole("row", { name: /premium_/ }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("kubectl edit -n shop ratelimitoverride.postern.dev/premium").waitFor();
    await dialog.getByLabel("Limit").fill("7");
    await dialog.getByText(/^spec:\s+limit: 7\s+duration: 1h\s+async: true/).waitFor();
    expect(await dialog.getByRole("button", { name: "Save" }).getAttribute("title")).toContain("A manifest manages");
    expect(await dialog.getByRole("button", { name: "Delete" }).getAttribute("title")).toContain("A manifest");
  });

  test("override form names the manifest if the override became managed before the change", async ({
    dashboard,
    open,
    faults,
  }) => {
    faults.expect(/409/);
    const { name, path } = await aNamespace(dashboard, { acme: 5 });
    const page = await open(path);
    await page.getByRole("row", { name: /acme/ }).click();
    const response = await fetch(`${dashboard.url}/v2/ratelimit.setOverride`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${dashboard.rootKey}`,
        "content-type": "application/json",
        "Postern-Manager": "main/RatelimitOverride/shop/acme",
        "Postern-Adopt": "true",
      },
      body: JSON.stringify({ namespace: name, identifier: "acme", limit: 5, duration: HOUR_MS }),
    });
    expect(response.status).toBe(200);
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Limit").fill("9");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("kubectl edit -n shop ratelimitoverride.postern.dev/acme").waitFor();
    await dialog.getByText(/^spec:\s+limit: 9\s+duration: 1h/).waitFor();
  });

  test("dashboard shows the manifest of an override with its namespace", async ({ dashboard, open }) => {
    const { name, path } = await aNamespace(dashboard, { "a b*": 5 });
    const page = await open(path);
    await page.getByRole("row", { name: /a b/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Show as YAML" }).click();
    const text = await page.getByRole("dialog", { name: "Manifest" }).locator("pre").first().innerText();
    expect(text).toContain(`kind: RatelimitNamespace\nmetadata:\n  name: ${name}\n`);
    expect(text).toContain("  identifier: a b*\n  limit: 5\n  duration: 1h\n  adopt: Match");
  });
});

describe("the tester", () => {
  test("limit tester shows the limit of an identifier and all matching overrides", async ({ dashboard, open }) => {
    const { name, path } = await aNamespace(dashboard, { "*": 1, "premium_*": 100, "*_eu": 50, premium_7: 7 });
    await dashboard.call("ratelimit.limit", {
      namespace: name,
      identifier: "premium_8_eu",
      limit: 10,
      duration: HOUR_MS,
      cost: 3,
    });
    const page = await open(path);
    const field = page.getByLabel("Which limit does an identifier get?");
    const response = page.getByRole("region", { name: "Tester" });
    await field.fill("premium_8_eu");
    await response.getByText("premium_8_eu would have 100 per 1 h, because of the pattern premium_*.").waitFor();
    await response.getByText("3 used, 97 remaining").waitFor();
    await response.getByText("*_eu, 50 per 1 h: it has 3 characters other than *, the applied one has 8.").waitFor();
    await response.getByText("*, 1 per 1 h: it has 0 characters other than *, the applied one has 8.").waitFor();
    await field.fill("premium_7");
    await response.getByText("because of the override for exactly this identifier.").waitFor();
    await response
      .getByText("premium_*, 100 per 1 h: an override for exactly this identifier takes precedence.")
      .waitFor();
    // Looking uses nothing.
    const { remaining } = await dashboard.call("ratelimit.limit", {
      namespace: name,
      identifier: "premium_8_eu",
      limit: 10,
      duration: HOUR_MS,
    });
    expect(remaining).toBe(96);
  });

  test("limit tester says so when no override matches", async ({ dashboard, open }) => {
    const { path } = await aNamespace(dashboard, { "premium_*": 100 });
    const page = await open(path);
    await page.getByLabel("Which limit does an identifier get?").fill("free");
    await page
      .getByText("free has the limit that the call or policy specifies, because no override matches.")
      .waitFor();
  });
});

describe("usage of a namespace", () => {
  const chart = (page: Page) => page.getByRole("figure", { name: "Checks of the namespace, passed and rejected" });
  const table = async (page: Page, name: string): Promise<(string | null)[][]> => {
    const rows = await page.getByRole("table", { name, exact: true }).locator("tbody tr").all();
    return Promise.all(rows.map((row) => row.getByRole("cell").allTextContents()));
  };

  /** A namespace with checks of two identifiers in the last minutes and of one days ago, beside another namespace with more. */
  async function aUsedNamespace(dashboard: Dashboard) {
    const { namespaceId, path } = await aNamespace(dashboard);
    const { id: workspaceId } = await dashboard.call("workspaces.getWorkspace", {});
    const event = (n: number, identifier: string, passed: boolean, of = namespaceId, agoMs = 60_000) =>
      aRatelimitEvent({
        id: `ev_${namespaceId}_${identifier}_${of}_${n}`,
        workspaceId,
        namespaceId: of,
        identifier,
        passed,
        timeMs: Date.now() - agoMs - n,
      });
    await storeUsage(dashboard.databaseUrl, [
      ...Array.from({ length: 9 }, (_, n) => event(n, "busy", true)),
      ...Array.from({ length: 5 }, (_, n) => event(n, HOSTILE, n > 2)),
      ...Array.from({ length: 50 }, (_, n) => event(n, "other", false, "rlns_other")),
      ...Array.from({ length: 4 }, (_, n) => event(n, "of last week", true, namespaceId, 3 * 24 * HOUR_MS)),
    ]);
    return path;
  }

  test("namespace page charts the checks and top identifiers of only this namespace", async ({ dashboard, open }) => {
    const page = await open(await aUsedNamespace(dashboard));
    await chart(page).waitFor();
    expect(await chart(page).locator("[data-series]").allTextContents()).toEqual([
      "within the limit11",
      "over the limit3",
    ]);
    await page.getByRole("table", { name: "Most rejections", exact: true }).waitFor();
    expect(await table(page, "Most checks")).toEqual([
      ["busy", "9", "0"],
      [HOSTILE, "5", "3"],
    ]);
    expect(await table(page, "Most rejections")).toEqual([[HOSTILE, "5", "3"]]);
    expect(await page.locator("img").count()).toBe(0);
    await page.getByRole("button", { name: "7d", exact: true }).click();
    await expect
      .poll(() => chart(page).locator("[data-series]").allTextContents())
      .toEqual(["within the limit15", "over the limit3"]);
    expect(new URL(page.url()).searchParams.get("range")).toBe("7d");
    await expectPresentable(page);
  });

  test("namespace page without checks says so", async ({ dashboard, open }) => {
    const { path } = await aNamespace(dashboard);
    const page = await open(`${path}?range=constructor`, { role: "viewer" });
    await page.getByText("No rejections in this period.").waitFor();
    expect(await page.getByText("No checks in this period.").count()).toBe(2);
    const pressed = page.getByRole("button", { name: "24h", exact: true });
    expect(await pressed.getAttribute("aria-pressed")).toBe("true");
  });

  test("namespace page keeps its overrides if the usage query is rejected", async ({
    dashboard,
    open,
    context,
    faults,
  }) => {
    faults.expect(/422/);
    await context.route("**/v2/analytics.getRatelimits", (route) =>
      route.fulfill({
        status: 422,
        json: { meta: { requestId: "req_x" }, error: { type: "/errors/query_execution_timeout", detail: "Slow." } },
      }),
    );
    const { path } = await aNamespace(dashboard, { acme: 5 });
    const page = await open(path);
    await page.getByText("Query less data: a shorter period").first().waitFor();
    await page.getByRole("row", { name: /acme/ }).waitFor();
  });

  test("page of a missing namespace shows what to do, without charts", async ({ open, faults, context }) => {
    faults.expect(/404/);
    let queries = 0;
    context.on("request", (request) => {
      if (request.url().includes("analytics.")) queries += 1;
    });
    const page = await open("/ratelimits/rlns_0000000000000000");
    await page.getByText("The object may have been deleted: go back to the list.").first().waitFor();
    expect(queries).toBe(0);
  });
});

test("rate limit pages are read-only for a viewer", async ({ dashboard, open }) => {
  const { path } = await aNamespace(dashboard, { acme: 5 });
  const page = await open(path, { role: "viewer" });
  const titleOf = (name: string) => page.getByRole("button", { name }).getAttribute("title");
  await page.getByRole("row", { name: /acme/ }).click();
  expect(await titleOf("Save")).toContain("ratelimit.*.set_override");
  expect(await page.getByRole("dialog").getByRole("button", { name: "Delete" }).getAttribute("title")).toContain(
    "ratelimit.*.delete_override",
  );
});

test("override form keeps its input while the connection is lost", async ({ dashboard, open, context, faults }) => {
  faults.expect(/ERR_FAILED/);
  const { name, path } = await aNamespace(dashboard);
  const page = await open(path);
  await page.getByRole("button", { name: "Set an override" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Identifier").fill("acme");
  await dialog.getByLabel("Limit").fill("3");
  await context.route("**/v2/ratelimit.setOverride", (route) => route.abort());
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("Check the connection to the server").waitFor();
  await context.unroute("**/v2/ratelimit.setOverride");
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.waitFor({ state: "hidden" });
  expect(await dashboard.call("admin.listOverrides", { namespace: name })).toMatchObject([
    { identifier: "acme", limit: 3 },
  ]);
});

test("rate limit page is accessible and fits every window size", async ({ dashboard, open }) => {
  const { path } = await aNamespace(dashboard, { "*": 1, acme: 5, [`${"long".repeat(100)}*`]: 5 });
  const page = await open(path);
  await page.getByText(/^longlong/).waitFor();
  await page.getByLabel("Which limit does an identifier get?").fill("acme");
  await page.getByText("because of the override for exactly this identifier.").waitFor();
  await expectPresentable(page);
});
