import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { aVerificationEvent } from "../builders/usage-event.ts";
import { expectAccessible, expectPresentable } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";
import { expectReachable } from "./keyboard.ts";
import { storeUsage } from "./usage-events.ts";

const test = dashboardTest();

const HOSTILE = "<img src=x onerror=alert(1)> \"'& 支付 ‮";
const OWNER = "owner.of.full";
let made = 0;

/** An API with settings, twelve keys, a policy and usage, beside another one whose name is its id. */
async function fullApi(dashboard: Dashboard) {
  const { call } = dashboard;
  const unique = `full-${++made}`;
  const { apiId } = await call("apis.createApi", { name: `${HOSTILE} ${unique}` });
  await call("apis.createApi", { name: apiId });
  await inDatabase(
    dashboard,
    `update apis set default_prefix = 'prod', default_byte_length = 24, ip_allow_list = '{10.0.0.0/8,::1}',
            delete_protection = true where id = $1`,
    [apiId],
  );
  const keyIds: string[] = [];
  for (let n = 0; n < 12; n++) {
    const named = { name: n === 11 ? "W".repeat(255) : `${unique} ${n}`, externalId: OWNER };
    keyIds.push((await call("keys.createKey", { apiId, enabled: n % 2 === 0, ...named })).keyId);
  }
  const policyName = `guards-${unique}`;
  await call("managed.applyObject", policyBody(apiId, policyName));
  const [named] = await call("admin.resolveNames", { kind: "api", ids: [apiId] });
  const { id: workspaceId } = await call("workspaces.getWorkspace", {});
  const keySpaceId = named?.keySpaceId ?? "";
  const events = Array.from({ length: 30 }, (_, n) =>
    aVerificationEvent({
      id: `ev_${unique}_${n}`,
      workspaceId,
      // Some of another API.
      keySpaceId: n < 20 ? keySpaceId : "ks_other",
      keyId: keyIds[0] ?? "",
      timeMs: Date.now() - 60_000 - n * 1000,
      outcome: n % 4 === 0 ? "RATE_LIMITED" : "VALID",
    }),
  );
  await storeUsage(dashboard.databaseUrl, events);
  return { apiId, name: `${HOSTILE} ${unique}`, policyName, path: `/apis/${apiId}` };
}

const section = (page: Page, name: string) => page.getByRole("region", { name, exact: true });
const factOf = async (page: Page, name: string): Promise<string | null> =>
  section(page, "Settings")
    .locator("div", { has: page.locator("dt", { hasText: name }) })
    .locator("dd")
    .textContent();

describe("the page of an API", () => {
  test("API page shows settings, keys, policies and usage of only this API, and a hostile name as text", async ({
    dashboard,
    open,
  }) => {
    const { apiId, name, policyName } = await fullApi(dashboard);
    const page = await open(`/apis?search=${apiId}`);
    await page.getByRole("link", { name: "full-" }).first().click();
    await page.waitForURL(`**/apis/${apiId}*`);
    await expect.poll(() => page.locator("h1").textContent()).toBe(name);
    expect(await page.locator("img").count()).toBe(0);
    await page.getByText("protected", { exact: true }).waitFor();
    expect(await factOf(page, "Default prefix")).toBe("prod");
    expect(await factOf(page, "Default length")).toBe("24 random bytes");
    expect(await factOf(page, "Allowed addresses")).toBe("10.0.0.0/8, ::1");
    expect(await factOf(page, "Delete protection")).toBe("on");
    await page.getByRole("link", { name: policyName }).waitFor();
    const rows = section(page, "Newest keys").getByRole("row");
    await expect.poll(() => rows.count()).toBe(11);
    const figure = page.getByRole("figure", { name: "Verifications of the API by outcome" });
    await expect
      .poll(() => figure.locator("[data-series]").allTextContents(), { timeout: 10_000 })
      .toEqual(["valid15", "over a limit5"]);

    await page.getByRole("link", { name: "All keys of the API" }).click();
    await page.getByRole("heading", { name: /^Keys of <img/ }).waitFor();
    await page.getByRole("link", { name: "About the API" }).click();
    for (const [link, parameter, heading] of [
      ["Usage", "api", "Usage"],
      ["Audit log", "targetId", "Audit log"],
    ] as const) {
      await page.getByRole("main").getByRole("link", { name: link, exact: true }).click();
      await page.getByRole("heading", { name: heading, exact: true }).waitFor();
      expect(new URL(page.url()).searchParams.get(parameter)).toBe(apiId);
      await page.goBack();
    }
  });

  test("API page guides the user to create the first key, and can rename and delete the API", async ({
    dashboard,
    open,
    faults,
  }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "empty-api" });
    const page = await open(`/apis/${apiId}`);
    const dialog = page.getByRole("dialog");
    await page.getByText("This API has no keys yet.").waitFor();
    await page.getByText("No policy accepts its keys.").waitFor();
    await page.getByText("No verifications in this period.").waitFor();
    expect(await factOf(page, "Default prefix")).toBe("none");
    expect(await factOf(page, "Allowed addresses")).toBe("all");

    await page.getByRole("link", { name: "Create the first key" }).click();
    await page.getByText("Keys of empty-api").waitFor();
    await dialog.getByLabel("Name", { exact: true }).fill("the first");
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    await dialog.getByText("The key is shown only once").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByRole("link", { name: "About the API" }).click();
    await section(page, "Newest keys").getByText("the first").waitFor();

    await page.getByRole("button", { name: "Rename" }).click();
    await dialog.getByLabel("Name").fill("renamed-api");
    await dialog.getByRole("button", { name: "Rename" }).click();
    await page.getByRole("heading", { name: "renamed-api" }).waitFor();

    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("All of its keys (1) stop working").waitFor();
    await dialog.getByRole("textbox").fill("renamed-api");
    await dialog.getByRole("button", { name: "Delete the API" }).click();
    await page.getByRole("heading", { name: "APIs" }).waitFor();
    faults.expect(/404/);
    await page.goBack();
    await page.getByText("The object may have been deleted: go back to the list.").waitFor();
    expect(await page.getByRole("heading", { name: "renamed-api" }).count()).toBe(0);
  });

  test.for([
    { what: "an unused id", apiId: "api_0000000000000000" },
    { what: "markup", apiId: encodeURIComponent(HOSTILE) },
    { what: "a long id", apiId: `api_${"x".repeat(300)}` },
  ])("page of a missing API shows an error and no actions: $what", async ({ apiId }, { open, faults }) => {
    faults.expect(/40[04]/);
    const page = await open(`/apis/${apiId}`);
    await page.getByText("Reading the API failed.").waitFor();
    expect(await page.getByRole("button", { name: "Rename" }).count()).toBe(0);
  });

  test("API page of a missing API names the id", async ({ open, faults }) => {
    faults.expect(/404/);
    const page = await open("/apis/api_0000000000000000");
    await page.getByText("There is no API api_0000000000000000 in the workspace.").waitFor();
    await page.getByText("The object may have been deleted: go back to the list.").waitFor();
  });

  test("API page locks a managed API and names its manifest", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "managed-api" });
    await inDatabase(dashboard, "update apis set manager = 'main/Api/shop/managed' where id = $1", [apiId]);
    const page = await open(`/apis/${apiId}`);
    await page.getByText("A manifest manages this object.").waitFor();
    await page.getByText(`postern api update --id ${apiId} --workspace ws_`).waitFor();
    expect(await page.getByRole("button", { name: "Change the settings" }).count()).toBe(0);
    for (const name of ["Rename", "Delete"]) {
      const button = page.getByRole("button", { name, exact: true });
      expect(await button.getAttribute("title")).toContain("A manifest manages this object");
    }
  });

  test("API page changes settings, shows a server error at its field, and unlocks a protected API", async ({
    dashboard,
    open,
    faults,
  }) => {
    const { call } = dashboard;
    const { apiId } = await call("apis.createApi", { name: "set-api" });
    const page = await open(`/apis/${apiId}`);
    const dialog = page.getByRole("dialog");
    const change = page.getByRole("button", { name: "Change the settings" });
    const save = dialog.getByRole("button", { name: "Save" });
    await change.click();
    await save.press("Enter");
    await dialog.getByText("No changes yet.").waitFor();
    await dialog.getByLabel("Default length of new keys").fill("15");
    await save.press("Enter");
    expect(await dialog.getByLabel("Default length of new keys").getAttribute("aria-invalid")).toBe("true");
    await dialog.getByLabel("Default length of new keys").fill("32");
    await dialog.getByLabel("Default prefix of new keys").fill("prod");
    await dialog.getByLabel("Allowed addresses").fill("10.0.0.0/8\nexample.com\n");
    await dialog.getByLabel("Delete protection").check();
    // Someone else changes another setting meanwhile, which the form keeps.
    await call("apis.updateApi", { apiId, keyEncryption: true });
    faults.expect(/400/);
    await save.click();
    await dialog.getByText('"example.com" is not an IP address or range').waitFor();
    expect(await dialog.getByLabel("Allowed addresses").getAttribute("aria-invalid")).toBe("true");
    await dialog.getByLabel("Allowed addresses").fill("10.0.0.0/8\n\n 10.0.0.0/8\n::1");
    await save.dblclick();
    await dialog.waitFor({ state: "detached" });
    await page.getByText("protected", { exact: true }).waitFor();
    await expect.poll(() => factOf(page, "Allowed addresses")).toBe("10.0.0.0/8, ::1");
    expect(await factOf(page, "Default prefix")).toBe("prod");
    expect(await factOf(page, "Default length")).toBe("32 random bytes");
    expect(await factOf(page, "Recoverable keys")).toBe("allowed");
    const { key } = await call("keys.createKey", { apiId });
    expect(key).toMatch(/^prod_/);

    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await dialog.getByRole("link", { name: "settings of the API" }).click();
    await dialog.waitFor({ state: "detached" });
    await change.click();
    await dialog.getByLabel("Delete protection").uncheck();
    await page.keyboard.press("Escape");
    await page.getByText("The form has input that is not saved.").waitFor();
    await page.getByRole("button", { name: "Stay" }).click();
    await save.click();
    await expect.poll(() => factOf(page, "Delete protection")).toBe("off");
    await page.getByRole("button", { name: "Delete", exact: true }).click();
    await dialog.getByRole("button", { name: "Delete the API" }).waitFor();
  });

  test("API page shows a viewer all data and which permissions are missing", async ({ dashboard, open }) => {
    const { path } = await fullApi(dashboard);
    const page = await open(path, { role: "viewer" });
    await page.getByRole("figure", { name: "Verifications of the API by outcome" }).waitFor();
    await expectAccessible(page);
    for (const [name, tuple] of [
      ["Rename", "update_api"],
      ["Change the settings", "update_api"],
      ["Delete", "delete_api"],
    ] as const) {
      const button = page.getByRole("button", { name, exact: true });
      expect(await button.getAttribute("title")).toContain(`api.*.${tuple}`);
      await button.click({ force: true });
      expect(await page.getByRole("dialog").count()).toBe(0);
    }
  });

  test("API page shows keys and settings if the usage query is rejected", async ({
    dashboard,
    open,
    context,
    faults,
  }) => {
    faults.expect(/422/);
    await context.route("**/v2/analytics.*", (route) =>
      route.fulfill({
        status: 422,
        json: { meta: { requestId: "req_x" }, error: { type: "/errors/query_execution_timeout", detail: "Slow." } },
      }),
    );
    const { path, policyName } = await fullApi(dashboard);
    const page = await open(path);
    await page.getByText("Query less data: a shorter period").waitFor();
    await page.getByRole("link", { name: policyName }).waitFor();
    await page.getByText("24 random bytes").waitFor();
  });

  test("API page finds a policy beyond the first page of policies on demand", async ({ dashboard, open, context }) => {
    const { path, policyName } = await fullApi(dashboard);
    await context.route("**/v2/admin.listPolicies", async (route) => {
      const { cursor } = route.request().postDataJSON() as { cursor?: string };
      if (cursor !== undefined) return route.fallback();
      const meta = { requestId: "req_x" };
      await route.fulfill({ json: { meta, data: [], pagination: { hasMore: true, cursor: "pol_" } } });
    });
    const page = await open(path);
    await page.getByRole("button", { name: "Search further policies" }).click();
    await page.getByRole("link", { name: policyName }).waitFor();
  });

  test("API page is accessible, can be used by keyboard and fits every window size", async ({ dashboard, open }) => {
    const { path, policyName } = await fullApi(dashboard);
    const page = await open(path);
    await page.getByRole("link", { name: policyName }).waitFor();
    await page.locator("canvas").first().waitFor();
    await expectReachable(page);
    await expectPresentable(page);
  });
});

describe("links", () => {
  test("key page links to its API, identity, owner's usage, roles and logs", async ({ dashboard, open }) => {
    const { call } = dashboard;
    const { apiId } = await call("apis.createApi", { name: "linked api" });
    const limit = { name: "shared", limit: 5, duration: 60_000 };
    const { identityId } = await call("identities.createIdentity", { externalId: "linked.owner", ratelimits: [limit] });
    await call("permissions.createRole", { name: "linked-role", permissions: ["linked.read"] });
    const { keyId } = await call("keys.createKey", { apiId, externalId: "linked.owner", roles: ["linked-role"] });
    const page = await open(`/keys/${keyId}`);
    const { workspace } = Object.fromEntries(new URL(page.url()).searchParams);
    const main = page.getByRole("main");
    await main.getByRole("link", { name: "linked-role" }).waitFor();
    const addresses = async (name: string): Promise<string[]> => {
      const links = await main.getByRole("link", { name, exact: true }).all();
      return Promise.all(links.map(async (link) => (await link.getAttribute("href")) ?? ""));
    };
    const searchOf = (address: string | undefined) =>
      Object.fromEntries(new URL(address ?? "", dashboard.url).searchParams);
    for (const [name, path, search] of [
      ["linked api", `/apis/${apiId}`, {}],
      ["Its keys", "/keys", { api: apiId }],
      ["Usage", "/usage", { key: keyId }],
      ["Audit log", "/audit", { targetId: keyId }],
      ["Explain", "/explain", { keyId }],
      [identityId, `/identities/${identityId}`, {}],
      ["identity", `/identities/${identityId}`, {}],
      ["all keys", "/keys", { by: "owner", q: "linked.owner" }],
      ["usage", "/usage", { owner: "linked.owner" }],
      ["linked-role", "/permissions", { roles: "linked-role" }],
      ["linked.read", "/permissions", { search: "linked.read" }],
    ] as const) {
      const [address] = await addresses(name);
      expect(address?.split("?")[0], name).toBe(`/dashboard${path}`);
      expect(searchOf(address), name).toEqual({ ...search, ...(workspace === undefined ? {} : { workspace }) });
    }
    await main.getByRole("link", { name: identityId }).click();
    await page.getByRole("heading", { name: "linked.owner" }).waitFor();
    await main.getByRole("link", { name: "All keys of the owner" }).waitFor();
    await main.getByRole("row").getByRole("link").click();
    await page.waitForURL(`**/keys/${keyId}*`);
    await main.getByRole("link", { name: "linked api" }).first().click();
    await page.getByRole("heading", { name: "linked api" }).waitFor();
  });

  test("policy, explanation, audit log and root key link to the API", async ({ dashboard, open }) => {
    const { call } = dashboard;
    const { apiId } = await call("apis.createApi", { name: "api of links" });
    const { keyId } = await call("keys.createKey", { apiId });
    const { policyId = "" } = (await call("managed.applyObject", policyBody(apiId, "links-to-api"))).ids;
    const permissions = [`api.${apiId}.verify_key`];
    const { rootKeyId } = await call("admin.createRootKey", { name: "of one api", permissions });
    const page = await open(`/policies/${policyId}`);
    const link = page.locator(`a[href^="/dashboard/apis/${apiId}"]`).first();
    for (const path of [
      `/policies/${policyId}`,
      `/explain?keyId=${keyId}`,
      `/root-keys?rootKey=${rootKeyId}`,
      `/audit?targetId=${apiId}&event=api.create`,
    ]) {
      await page.goto(`${dashboard.url}/dashboard${path}`);
      if (path.startsWith("/audit")) await page.getByRole("row").nth(1).click();
      await link.click();
      await page.getByRole("heading", { name: "api of links", exact: true }).waitFor();
    }
  });
});
