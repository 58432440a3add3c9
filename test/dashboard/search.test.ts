import { createHash } from "node:crypto";
import type { Page, Request } from "playwright-core";
import { describe, expect } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { expectAccessible, expectNoSideways } from "./accessible.ts";
import { expectHarmless } from "./harmless.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

/** A loaded machine renders late. */
const PATIENT = { timeout: 10_000 };

const field = (page: Page) => page.getByRole("combobox", { name: "Search pages, actions and objects" });
const dialog = (page: Page) => page.getByRole("dialog", { name: "Search", exact: true });
const group = (page: Page, name: string) => dialog(page).getByRole("group", { name, exact: true });
const foot = (page: Page) => dialog(page).getByRole("status");
const highlighted = (page: Page) => dialog(page).getByRole("option", { selected: true });
const isFocused = (page: Page) => field(page).evaluate((element) => element === document.activeElement);

async function openSearch(page: Page): Promise<void> {
  await page.keyboard.press("Control+k");
  await field(page).waitFor();
  await expect.poll(() => isFocused(page), PATIENT).toBe(true);
}

/** Types a text and waits until all of its results are shown. */
async function searchFor(page: Page, text: string): Promise<void> {
  await field(page).fill(text);
  await expect.poll(() => foot(page).innerText(), PATIENT).toMatch(/result|Nothing found|failed/);
}

const isSearch = (request: Request): boolean => /\/v2\/.*\.(list|search|get)/.test(request.url());
const bodiesOf = (requests: readonly Request[]): string =>
  requests.map((one) => `${one.url()} ${JSON.stringify(one.headers())} ${one.postData() ?? ""}`).join("\n");

let unique = 0;
/** Creates an object of each kind, all with the same text in their names. */
async function makeEach({ call }: Dashboard) {
  const name = `quokka${++unique}`;
  const { apiId } = await call("apis.createApi", { name: `${name} api` });
  const { keyId, key } = await call("keys.createKey", { apiId, name: `${name} key`, prefix: `pre${unique}` });
  const { identityId } = await call("identities.createIdentity", { externalId: `${name}.owner` });
  const { roleId } = await call("permissions.createRole", { name: `${name}.role` });
  const { permissionId } = await call("permissions.createPermission", { name: `${name} reads`, slug: `${name}.read` });
  const { namespaceId } = await call("ratelimit.createNamespace", { name: `${name}.mails` });
  const { policyId = "" } = (await call("managed.applyObject", policyBody(apiId, `${name}-policy`))).ids;
  const permissions = ["api.*.create_api"];
  const { rootKeyId } = await call("admin.createRootKey", { name: `${name} backend`, permissions });
  return { name, apiId, keyId, key, identityId, roleId, permissionId, namespaceId, policyId, rootKeyId };
}

describe("opening", () => {
  test("shortcut and button open the search, and Escape restores the focus", async ({ open }) => {
    const page = await open("/identities");
    const button = page.getByRole("button", { name: "Search", exact: true });
    await button.focus();
    await page.keyboard.press("Enter");
    await field(page).waitFor();
    await expect.poll(() => isFocused(page), PATIENT).toBe(true);
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "hidden" });
    await expect.poll(() => button.evaluate((element) => element === document.activeElement), PATIENT).toBe(true);

    const filter = page.getByRole("searchbox").first();
    await filter.focus();
    await openSearch(page);
    await field(page).fill("something");
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "hidden" });
    await expect.poll(() => filter.evaluate((element) => element === document.activeElement), PATIENT).toBe(true);
    await openSearch(page);
    expect(await field(page).inputValue()).toBe("");
  });

  test("search shortcut works on every keyboard layout, but not with additional modifiers", async ({ open }) => {
    const page = await open("/identities");
    await page.keyboard.press("Control+Shift+k");
    await page.keyboard.press("Alt+k");
    await page.evaluate(() =>
      document.body.dispatchEvent(
        new KeyboardEvent("keydown", { key: "л", code: "KeyK", ctrlKey: true, bubbles: true, cancelable: true }),
      ),
    );
    await field(page).waitFor();
    expect(await dialog(page).count()).toBe(1);
    await page.keyboard.press("Control+k");
    expect(await dialog(page).count()).toBe(1);
  });

  test("search shortcut keeps the unsaved input of another dialog", async ({ open }) => {
    const page = await open("/apis");
    await page.getByRole("button", { name: "Create an API" }).click();
    await page.getByLabel("Name", { exact: true }).fill("half typed");
    await page.keyboard.press("Control+k");
    await page.waitForLoadState("networkidle");
    expect(await dialog(page).count()).toBe(0);
    expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("half typed");
    expect(await page.getByText("Discard your input?").count()).toBe(0);
  });

  test("failure to load the search is explained and can be retried", async ({ open, context, faults }) => {
    faults.expect(/search-dialog|dynamically imported|404/);
    await context.route("**/assets/search-dialog-*.js", (route) => route.fulfill({ status: 404 }));
    const page = await open("/identities");
    await page.keyboard.press("Control+k");
    await page.getByText("The search could not be loaded.").waitFor();
    expect(await dialog(page).count()).toBe(0);
  });
});

describe("pages and actions", () => {
  test("arrow keys highlight a page, and Enter opens it in the same workspace", async ({ open }) => {
    const page = await open("/identities");
    const workspace = new URL(page.url()).searchParams.get("workspace");
    await openSearch(page);
    const options = dialog(page).getByRole("option");
    expect(await highlighted(page).innerText()).toBe(await options.first().innerText());
    await page.keyboard.press("ArrowUp");
    expect(await highlighted(page).innerText()).toBe(await options.last().innerText());
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    expect(await highlighted(page).innerText()).toBe(await options.nth(1).innerText());
    const active = await field(page).getAttribute("aria-activedescendant");
    expect(active).toBe(await highlighted(page).getAttribute("id"));
    expect(await isFocused(page)).toBe(true);

    await field(page).fill("audit");
    expect(await highlighted(page).innerText()).toBe("Audit log");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Audit log" }).waitFor();
    expect(new URL(page.url()).searchParams.get("workspace")).toBe(workspace);
    await page.waitForFunction(() => document.activeElement?.matches("main h1"));
    expect(await dialog(page).count()).toBe(0);
    await page.goBack();
    await page.getByRole("heading", { name: "Identities" }).waitFor();
  });

  test("search ranks a page whose name begins with the text first", async ({ open }) => {
    const page = await open("/identities");
    await openSearch(page);
    await field(page).fill("keys");
    expect(await highlighted(page).innerText()).toBe("Keys");
    await field(page).fill("log aud");
    expect(await highlighted(page).innerText()).toBe("Audit log");
  });

  test.for([
    "Create an API",
    "Create a key",
    "Create a root key",
    "Create an identity",
    "Create a role",
    "Create a permission",
    "Create a namespace",
    "Create a workspace",
  ])("action opens its dialog once: %s", async (name, { open }) => {
    const page = await open("/usage");
    await openSearch(page);
    await field(page).fill(name);
    await highlighted(page).getByText(name, { exact: true }).waitFor();
    await page.keyboard.press("Enter");
    const opened = page.getByRole("dialog", { name, exact: true });
    await opened.waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.has("create"), PATIENT).toBe(false);
    await page.waitForLoadState("networkidle");
    expect(await opened.evaluate((element) => element.contains(document.activeElement))).toBe(true);
    await page.keyboard.press("Escape");
    await opened.waitFor({ state: "hidden" });
    await page.reload();
    await page.locator("main h1").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("viewer gets no actions, neither in the search nor by URL", async ({ open, dashboard }) => {
    const page = await open("/apis?create=api", { role: "viewer" });
    await expect.poll(() => new URL(page.url()).searchParams.has("create"), PATIENT).toBe(false);
    expect(await page.getByRole("dialog").count()).toBe(0);
    await page.goto(`${dashboard.url}/dashboard/permissions?create=constructor`);
    await page.locator("main h1").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    await openSearch(page);
    await group(page, "Pages").waitFor();
    expect(await group(page, "Actions").count()).toBe(0);
  });
});

describe("objects", () => {
  test("search finds objects of each kind by name and id and opens them", async ({ open, dashboard }) => {
    const made = await makeEach(dashboard);
    const { name } = made;
    const kinds = [
      ["APIs", `${name} api`, made.apiId, new RegExp(`/apis/${made.apiId}`)],
      ["Keys", `${name} key`, made.keyId, new RegExp(`/keys/${made.keyId}`)],
      ["Identities", `${name}.owner`, made.identityId, new RegExp(`/identities/${made.identityId}`)],
      ["Roles", `${name}.role`, made.roleId, /roles=role_/],
      ["Permissions", `${name}.read`, made.permissionId, /search=perm_/],
      ["Rate-limit namespaces", `${name}.mails`, made.namespaceId, new RegExp(`/ratelimits/${made.namespaceId}`)],
      ["Policies", `${name}-policy`, made.policyId, new RegExp(`/policies/${made.policyId}`)],
      ["Root keys", `${name} backend`, made.rootKeyId, new RegExp(`rootKey=${made.rootKeyId}`)],
    ] as const;
    const page = await open("/usage");
    await openSearch(page);
    await searchFor(page, name);
    for (const [kind, label] of kinds) expect(await group(page, kind).innerText(), kind).toContain(label);
    await page.keyboard.press("Escape");
    for (const [kind, label, id, address] of kinds) {
      await openSearch(page);
      await searchFor(page, id);
      expect(await group(page, kind).getByRole("option").count(), kind).toBe(1);
      expect(await highlighted(page).innerText()).toContain(label);
      await page.keyboard.press("Enter");
      await page.waitForURL(address);
      await page.getByText(label).first().waitFor();
      await page.waitForLoadState("networkidle");
    }
  });

  test("search finds a key by the start that lists show", async ({ open, dashboard }) => {
    const { keyId } = await makeEach(dashboard);
    const [listed] = await dashboard.call("admin.searchKeys", { keyId });
    const page = await open("/usage");
    await openSearch(page);
    for (const text of [listed?.start ?? "", `${listed?.start}…`]) {
      await searchFor(page, text);
      await group(page, "Keys").getByText(`${listed?.start}…`).waitFor();
    }
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/keys/${keyId}*`);
  });

  test("search shows at most five objects of each kind", async ({ open, dashboard }) => {
    for (let n = 0; n < 7; n++) await dashboard.call("permissions.createRole", { name: `crowd.${n}` });
    const page = await open("/usage");
    await openSearch(page);
    await searchFor(page, "crowd");
    expect(await group(page, "Roles").getByRole("option").count()).toBe(5);
  });

  test("search shows hostile names as text within its width", async ({ open, dashboard }) => {
    const names = ["<b>wombat</b><img src=x onerror=hacked=1>", `wombat${"W".repeat(194)}`, "wombat \u202eשלום‮ مرحبا"];
    for (const name of names) await dashboard.call("apis.createApi", { name });
    const page = await open("/usage", { width: 390, height: 844 });
    await openSearch(page);
    await searchFor(page, "wombat");
    for (const name of names) await group(page, "APIs").getByText(name).waitFor();
    await expectHarmless(page, "search");
    const isWide = await dialog(page).evaluate((element) => element.scrollWidth > element.clientWidth);
    expect(isWide).toBe(false);
    await searchFor(page, `nothing ${"<i>x</i>".repeat(30)}`);
    await foot(page).getByText("Nothing found for").waitFor();
    await expectNoSideways(page);
    await expectHarmless(page, "search");
  });

  test("search says when nothing is found", async ({ open }) => {
    const page = await open("/usage");
    await openSearch(page);
    await searchFor(page, "no such object");
    expect(await foot(page).innerText()).toBe("Nothing found for “no such object”.");
    await page.keyboard.press("Enter");
    await page.keyboard.press("ArrowDown");
    expect(await dialog(page).count()).toBe(1);
  });
});

describe("slow and failing servers", () => {
  test("older search response that arrives last does not replace newer results", async ({
    open,
    dashboard,
    context,
  }) => {
    await dashboard.call("apis.createApi", { name: "lemur old" });
    await dashboard.call("apis.createApi", { name: "lemming new" });
    const aborted: string[] = [];
    context.on("requestfailed", (request) => void aborted.push(request.postData() ?? ""));
    const release = Promise.withResolvers<void>();
    await context.route("**/v2/admin.listApis", async (route) => {
      if (route.request().postData()?.includes("lemur")) await release.promise;
      await route.continue().catch(() => undefined);
    });
    const page = await open("/usage");
    await openSearch(page);
    const sent = page.waitForRequest((request) => request.postData()?.includes('"lemur"') === true);
    await field(page).fill("lemur");
    await sent;
    await searchFor(page, "lemming");
    release.resolve();
    await page.waitForLoadState("networkidle");
    expect(await group(page, "APIs").innerText()).toContain("lemming new");
    expect(await dialog(page).innerText()).not.toContain("lemur old");
    expect(aborted.some((body) => body.includes("lemur"))).toBe(true);
  });

  test("Enter opens nothing before the search results arrive, and the first result afterwards", async ({
    open,
    dashboard,
    context,
  }) => {
    const { keyId, name } = await makeEach(dashboard);
    const page = await open("/usage");
    await openSearch(page);
    const release = Promise.withResolvers<void>();
    await context.route("**/v2/*", async (route) => {
      if (isSearch(route.request())) await release.promise;
      await route.continue().catch(() => undefined);
    });
    const before = page.url();
    await page.keyboard.type(`${name} key`);
    await page.keyboard.press("Enter");
    await foot(page).getByText("Searching …").waitFor();
    await page.keyboard.press("Enter");
    release.resolve();
    await group(page, "Keys").waitFor();
    expect(page.url()).toBe(before);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/keys/${keyId}*`);
  });

  test("search highlight stays on its result when slower results arrive above it", async ({
    open,
    dashboard,
    context,
  }) => {
    const { keyId, name } = await makeEach(dashboard);
    const release = Promise.withResolvers<void>();
    await context.route("**/v2/admin.listApis", async (route) => {
      await release.promise;
      await route.continue().catch(() => undefined);
    });
    const page = await open("/usage");
    await openSearch(page);
    await field(page).fill(name);
    await group(page, "Keys").waitFor();
    expect(await highlighted(page).innerText()).toContain(`${name} key`);
    release.resolve();
    await group(page, "APIs").waitFor();
    expect(await highlighted(page).innerText()).toContain(`${name} key`);
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/keys/${keyId}*`);
  });

  test("search hides kinds that the user cannot read, and shows other errors", async ({
    open,
    dashboard,
    context,
    faults,
  }) => {
    faults.expect(/403|500/);
    const { name } = await makeEach(dashboard);
    const refuse = (status: number, detail: string) => ({
      status,
      contentType: "application/json",
      body: JSON.stringify({ meta: { requestId: "req_1" }, error: { type: "x/y", detail } }),
    });
    await context.route("**/v2/admin.listRoles", (route) => route.fulfill(refuse(403, "no permission")));
    const page = await open("/usage");
    await openSearch(page);
    await searchFor(page, name);
    expect(await group(page, "Roles").count()).toBe(0);
    expect(await group(page, "APIs").count()).toBe(1);
    expect(await foot(page).innerText()).toMatch(/^\d+ results$/);
    await context.route("**/v2/admin.listNamespaces", (route) => route.fulfill(refuse(500, "disk on fire")));
    await searchFor(page, `${name}.`);
    expect(await foot(page).innerText()).toContain("Searching the rate-limit namespaces failed. disk on fire");
    expect(await group(page, "Identities").count()).toBe(1);
  });

  test("search still finds pages for a user without read permissions", async ({ open, context, faults }) => {
    faults.expect(/403/);
    const page = await open("/usage", { role: "viewer" });
    await context.route("**/v2/*", (route) =>
      route.fulfill({ status: 403, contentType: "application/json", body: '{"error":{"detail":"no permission"}}' }),
    );
    await openSearch(page);
    await searchFor(page, "explain");
    expect(await foot(page).innerText()).toBe("1 result");
    await searchFor(page, "some object");
    expect(await foot(page).innerText()).toBe("Nothing found for “some object”.");
  });
});

describe("complete keys", () => {
  test("pasted key is found by its hash and never sent, shown or stored", async ({ open, dashboard }) => {
    const { keyId, key, name } = await makeEach(dashboard);
    const page = await open("/usage");
    const requests: Request[] = [];
    page.on("request", (request) => void requests.push(request));
    await openSearch(page);
    for (const pasted of [key, `Authorization: Bearer ${key}`, ` "${key}" `]) {
      await page.keyboard.insertText(pasted);
      await group(page, "Keys").getByText(`${name} key`).waitFor();
      expect(await field(page).inputValue()).toBe("");
      expect(await page.content()).not.toContain(key);
    }
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/keys/${keyId}*`);
    await page.getByRole("heading", { name: `${name} key` }).waitFor();
    const sent = bodiesOf(requests);
    const random = key.slice(key.indexOf("_") + 1);
    for (const form of [key, random, encodeURIComponent(key), Buffer.from(key).toString("base64")])
      expect(sent).not.toContain(form);
    const hash = createHash("sha256").update(key).digest("base64");
    expect(sent).toContain(hash);
    for (const request of requests) expect(decodeURIComponent(request.url())).not.toContain(hash);
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, location.href]),
    );
    for (const form of [key, random, hash]) expect(kept).not.toContain(form);
  });

  test("typed key is not sent, and is hashed only on request", async ({ open, dashboard }) => {
    const { keyId, key } = await makeEach(dashboard);
    const page = await open("/usage");
    const requests: Request[] = [];
    page.on("request", (request) => void requests.push(request));
    await openSearch(page);
    await page.keyboard.type(key);
    expect(await highlighted(page).innerText()).toBe("Find the key by its hash");
    await page.waitForLoadState("networkidle");
    expect(bodiesOf(requests)).not.toContain(key.slice(0, -2));
    expect(bodiesOf(requests)).not.toContain('"hash"');
    await page.keyboard.press("Enter");
    await group(page, "Keys").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(`**/keys/${keyId}*`);
    expect(bodiesOf(requests)).not.toContain(key.slice(0, -2));
  });

  test("search explains an unknown key, and can still search for text that only looks like a key", async ({
    open,
    dashboard,
  }) => {
    const externalId = "user_2NNEqL2nrIRdJ194ndJqAHwEfxC";
    await dashboard.call("identities.createIdentity", { externalId });
    const page = await open("/usage");
    const requests: Request[] = [];
    page.on("request", (request) => void requests.push(request));
    await openSearch(page);
    await page.keyboard.insertText(externalId);
    await foot(page).getByText("None of the keys that you may read has this secret.").waitFor();
    await page.keyboard.press("Enter");
    await page.waitForLoadState("networkidle");
    expect(bodiesOf(requests)).not.toContain(externalId);
    await dialog(page).getByRole("button", { name: "This is not a key: search for the text" }).click();
    await group(page, "Identities").getByText(externalId).waitFor();
    expect(await field(page).inputValue()).toBe(externalId);
    expect(await isFocused(page)).toBe(true);
  });
});

describe("presentation", () => {
  test("search is accessible in both themes and fills a phone", async ({ open, dashboard }) => {
    const { name } = await makeEach(dashboard);
    const page = await open("/usage");
    await openSearch(page);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      for (const text of ["", name, "no such object"]) {
        if (text === "") await field(page).fill("");
        else await searchFor(page, text);
        await expectAccessible(page);
      }
    }
    await page.setViewportSize({ width: 390, height: 844 });
    await searchFor(page, name);
    expect(await dialog(page).boundingBox()).toMatchObject({ x: 0, y: 0, width: 390, height: 844 });
    await expectNoSideways(page);
    await expectAccessible(page);
    await dialog(page).getByRole("button", { name: "Close" }).click();
    await dialog(page).waitFor({ state: "hidden" });
    await expectNoSideways(page);
    expect(await page.getByRole("button", { name: "Search", exact: true }).isVisible()).toBe(true);
  });

  test("search keeps its size while results change, and a resting pointer changes no highlight", async ({
    open,
    dashboard,
  }) => {
    const { name } = await makeEach(dashboard);
    const page = await open("/usage");
    await openSearch(page);
    const box = await dialog(page).boundingBox();
    const third = await dialog(page).getByRole("option").nth(2).boundingBox();
    await page.mouse.move((third?.x ?? 0) + 20, (third?.y ?? 0) + 10);
    await searchFor(page, name);
    expect(await highlighted(page).innerText()).toContain(`${name} api`);
    expect(await dialog(page).boundingBox()).toEqual(box);
    await group(page, "Roles").getByRole("option").click();
    await page.waitForURL(/roles=role_/);
    await page.waitForFunction(() => document.activeElement?.matches("main h1"));
  });
});
