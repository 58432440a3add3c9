import { createHash } from "node:crypto";
import type { Page, Request } from "playwright-core";
import { describe, expect } from "vitest";
import { expectAccessible, expectPresentable } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

const HOSTILE = '"><script>alert(1)</script> {{7*7}} =HYPERLINK("x") 名前';

/** Everything that leaves a page, as text: addresses, headers and bodies. */
function watchRequests(page: Page): { sent(): string; requests: Request[] } {
  const requests: Request[] = [];
  page.on("request", (request) => void requests.push(request));
  return {
    requests,
    sent: () =>
      requests.map((one) => `${one.url()} ${JSON.stringify(one.headers())} ${one.postData() ?? ""}`).join("\n"),
  };
}

describe("the list of keys", () => {
  test("key list searches name, owner, start and id and keeps filters in the URL", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "orders" });
    const { keyId } = await dashboard.call("keys.createKey", {
      apiId,
      prefix: "findme",
      name: "Billing of tomorrow",
      externalId: "user_of.tomorrow",
    });
    for (let n = 0; n < 3; n++) await dashboard.call("keys.createKey", { apiId, prefix: "other", name: `Other ${n}` });
    const [found] = await dashboard.call("admin.searchKeys", { keyId });
    const page = await open("/keys");
    const field = page.getByLabel("Search, or paste a complete key");
    const rows = page.getByRole("row").filter({ has: page.getByRole("link") });
    await expect.poll(() => rows.count()).toBeGreaterThan(3);
    for (const [by, text] of [
      ["name", "billing of"],
      ["owner", "user_of.tomorrow"],
      ["start", found?.start ?? ""],
    ] as const) {
      await page.getByLabel("Search by").selectOption(by);
      await field.fill(text);
      // The one row of the last search stands there until the answer to this one has come.
      await expect
        .poll(() => {
          const { searchParams } = new URL(page.url());
          return [searchParams.get("by"), searchParams.get("q")];
        })
        .toEqual([by, text]);
      await expect.poll(() => rows.count()).toBe(1);
      await page.getByText("Billing of tomorrow").waitFor();
    }
    await field.fill(keyId);
    await page.waitForURL(`**/keys/${keyId}*`);
    await page.getByRole("heading", { name: "Billing of tomorrow" }).waitFor();
    await page.goBack();
    await expect.poll(() => rows.count()).toBe(1);
  });

  test("key list searches a pasted key by hash without sending the key", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "pasted" });
    const { keyId, key } = await dashboard.call("keys.createKey", { apiId, name: "Pasted key", prefix: "live" });
    const page = await open("/keys");
    const watched = watchRequests(page);
    const field = page.getByLabel("Search, or paste a complete key");
    await field.focus();
    await page.keyboard.insertText(key);
    await page.waitForURL(`**/keys/${keyId}*`);
    await page.getByRole("heading", { name: "Pasted key" }).waitFor();
    // In base64 a key has characters that an address or JSON would write in another way.
    const forms = [key, key.slice(5), encodeURIComponent(key), Buffer.from(key).toString("base64")];
    for (const form of forms) expect(watched.sent()).not.toContain(form);
    expect(watched.sent()).toContain(createHash("sha256").update(key).digest("base64"));
    for (const one of watched.requests)
      expect(one.url()).not.toContain(createHash("sha256").update(key).digest("base64"));
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, location.href]),
    );
    for (const form of forms) expect(kept).not.toContain(form);
    expect(await page.content()).not.toContain(key);

    await page.goBack();
    await field.focus();
    await page.keyboard.insertText(`${key.slice(0, -3)}Xy1`);
    await page.getByText("None of the keys that you may read has this secret.").waitFor();
    expect(await field.inputValue()).toBe("");
    expect(watched.sent()).not.toContain(key.slice(0, -3));
  });

  test("key list offers to search for a text that only looks like a key", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "resembling" });
    const externalId = "user_2NNEqL2nrIRdJ194ndJqAHwEfxC";
    await dashboard.call("keys.createKey", { apiId, name: "Resembling", externalId });
    const page = await open("/keys?by=owner");
    await page.getByLabel("Search, or paste a complete key").focus();
    await page.keyboard.insertText(externalId);
    await page.getByRole("button", { name: "This is not a key: search for the text" }).click();
    await page.getByText("Resembling").waitFor();
    await expect.poll(() => new URL(page.url()).searchParams.get("q")).toBe(externalId);
  });

  test("key list accepts a complete key of any format in the key field", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "imported" });
    const { migrationId } = await dashboard.call("admin.startImport", { apiId, name: "short keys" });
    const hash = createHash("sha256").update("short pass").digest("base64");
    await dashboard.call("keys.migrateKeys", { apiId, migrationId, keys: [{ hash, name: "Short key" }] });
    const page = await open("/keys");
    const watched = watchRequests(page);
    await page.getByLabel("Search by").selectOption("secret");
    await page.getByLabel("Complete key", { exact: true }).fill("short pass");
    expect(await page.getByLabel("Complete key", { exact: true }).getAttribute("type")).toBe("password");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Short key" }).waitFor();
    expect(watched.sent()).not.toMatch(/short.?pass/);
  });

  test("key list explains that the browser cannot hash the key, and sends nothing", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "insecure" });
    const { key } = await dashboard.call("keys.createKey", { apiId });
    const page = await open("/keys");
    await page.evaluate(() => Object.defineProperty(crypto, "subtle", { value: undefined }));
    const watched = watchRequests(page);
    await page.getByLabel("Search, or paste a complete key").focus();
    await page.keyboard.insertText(key);
    await page.getByText("Open the dashboard over HTTPS, or search by the start of the key.").waitFor();
    expect(watched.sent()).not.toContain(key);
    expect(watched.sent()).not.toContain("hash");
  });

  test("key list filters by state, credits, manifest, role and permission", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "narrowed" });
    await dashboard.call("permissions.createRole", { name: "narrow-role", permissions: ["narrow.read"] });
    const make = (body: object) => dashboard.call("keys.createKey", { apiId, ...body });
    await make({ name: "is-later", expires: Date.now() + 60 * 86_400_000 });
    await make({ name: "is-soon", expires: Date.now() + 3 * 86_400_000 });
    await make({ name: "is-off", enabled: false });
    await make({ name: "is-late", expires: 1 });
    await make({ name: "has-credits", credits: { remaining: 5 } });
    await make({ name: "has-role", roles: ["narrow-role"] });
    const managed = await make({ name: "has-manifest" });
    await inDatabase(dashboard, "update keys set manager = 'main/ApiKey/shop/narrow' where id = $1", [managed.keyId]);
    const page = await open(`/keys?api=${apiId}`);
    const names = () =>
      page
        .getByRole("row")
        .getByText(/^(is|has)-/)
        .allTextContents();
    const shows = (...expected: string[]) => expect.poll(names).toEqual(expected);
    await shows("has-manifest", "has-role", "has-credits", "is-late", "is-off", "is-soon", "is-later");
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByLabel("State", { exact: true }).selectOption("disabled");
    await shows("is-off");
    await page.getByLabel("State", { exact: true }).selectOption("expired");
    await shows("is-late");
    await page.getByLabel("State", { exact: true }).selectOption("any");
    await page.getByLabel("Expiry", { exact: true }).selectOption("30d");
    await shows("is-soon");
    await page.getByLabel("Expiry", { exact: true }).selectOption("90d");
    // The next to expire first.
    await shows("is-soon", "is-later");
    await page.getByLabel("Expiry", { exact: true }).selectOption("any");
    await page.getByLabel("Credits", { exact: true }).selectOption("yes");
    await shows("has-credits");
    await page.getByLabel("Credits", { exact: true }).selectOption("any");
    await page.getByLabel("Manifest", { exact: true }).selectOption("yes");
    await shows("has-manifest");
    await page.getByLabel("Manifest", { exact: true }).selectOption("any");
    await page.getByLabel("Role", { exact: true }).fill("narrow-role");
    await shows("has-role");
    await page.getByLabel("Role", { exact: true }).fill("");
    await shows("has-manifest", "has-role", "has-credits", "is-late", "is-off", "is-soon", "is-later");
    await page.getByLabel("Permission", { exact: true }).fill("narrow.read");
    await shows("has-role");
    // The address alone shows the same.
    await page.reload();
    await shows("has-role");
    await page.getByRole("button", { name: "Remove the filter Permission: narrow.read" }).click();
    await shows("has-manifest", "has-role", "has-credits", "is-late", "is-off", "is-soon", "is-later");
  });

  test("Escape closes the filters of the key list and keeps the chosen API", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "kept-by-escape" });
    const page = await open(`/keys?api=${apiId}`);
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByRole("combobox", { name: "API" }).press("Escape");
    await page.getByRole("dialog", { name: "Filters" }).waitFor({ state: "hidden" });
    expect(new URL(page.url()).searchParams.get("api")).toBe(apiId);
  });

  test("filters of the key list open as a sheet that fits a phone", async ({ open }) => {
    const page = await open("/keys", { width: 390, height: 844 });
    await page.getByRole("button", { name: "Filters" }).click();
    const sheet = page.getByRole("dialog", { name: "Filters" });
    await sheet.getByLabel("State").selectOption("expired");
    const { x, y, width, height } = (await sheet.boundingBox()) ?? { x: -1, y: -1, width: 0, height: 0 };
    expect([x, width, y + height]).toEqual([0, 390, 844]);
    expect(y).toBeGreaterThan(0);
    await expectAccessible(page);
    await sheet.getByRole("button", { name: "Done" }).click();
    await sheet.waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Remove the filter State: expired" }).waitFor();
  });

  test("key list shows hostile names and owners as text", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: HOSTILE });
    const { keyId } = await dashboard.call("keys.createKey", { apiId, name: HOSTILE, meta: { [HOSTILE]: HOSTILE } });
    await inDatabase(dashboard, "update keys set owner_id = $1 where id = $2", [HOSTILE, keyId]);
    const page = await open(`/keys?api=${apiId}`);
    await page.getByRole("row").getByText(HOSTILE).first().waitFor();
    await page.getByRole("link", { name: "…" }).first().click();
    await page.getByRole("heading", { name: HOSTILE }).waitFor();
    await page.getByText(JSON.stringify(HOSTILE).slice(1, 30)).first().waitFor();
    expect(await page.evaluate(() => document.querySelectorAll("main script").length)).toBe(0);
  });

  test("list with keys in every state is accessible and fits every window size", async ({ open }) => {
    const page = await open("/keys");
    await page.getByText("has-credits").waitFor();
    await expectPresentable(page);
  });

  test("key list asks an unauthenticated user to sign in and sends no request", async ({ dashboard }) => {
    const context = await dashboard.browser.newContext();
    const page = await context.newPage();
    const watched = watchRequests(page);
    await page.goto(`${dashboard.url}/dashboard/keys`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(watched.sent()).not.toContain("/v2/");
    await context.close();
  });
});
