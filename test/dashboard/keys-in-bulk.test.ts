import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { expectPresentable } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

const hashOf = (key: string): string => createHash("sha256").update(key).digest("base64");

describe("all keys of an owner", () => {
  test("dashboard counts and disables all keys of an owner except managed ones", async ({ dashboard, open }) => {
    const { call } = dashboard;
    const { apiId } = await call("apis.createApi", { name: "leaked" });
    const keys = [];
    for (let n = 0; n < 3; n++) keys.push(await call("keys.createKey", { apiId, externalId: "leaked.owner" }));
    const other = await call("keys.createKey", { apiId, externalId: "other.owner" });
    const managed = keys.pop() as { keyId: string; key: string };
    await inDatabase(dashboard, "update keys set manager = 'main/ApiKey/shop/leak' where id = $1", [managed.keyId]);
    const page = await open("/keys", { role: "operator" });
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Disable all keys of an owner" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Owner").fill("leaked.owner");
    await page.keyboard.press("Tab");
    await dialog.getByRole("button", { name: "Count the keys" }).click();
    await dialog.getByText("2 keys would be disabled").waitFor();
    await dialog.getByText("main/ApiKey/shop/leak").waitFor();
    for (const { key } of keys) expect((await call("keys.verifyKey", { key })).code).toBe("VALID");
    await dialog.getByRole("button", { name: "Disable 2 keys" }).click();
    await page.getByText("2 keys of leaked.owner disabled.").waitFor();
    for (const { key } of keys) expect((await call("keys.verifyKey", { key })).code).toBe("DISABLED");
    for (const { key } of [managed, other]) expect((await call("keys.verifyKey", { key })).code).toBe("VALID");
  });
});

describe("selected keys", () => {
  /** Makes keys without secrets; the first is the first of the list. */
  async function makeKeys(dashboard: Dashboard, name: string, count: number) {
    const { apiId } = await dashboard.call("apis.createApi", { name });
    await inDatabase(
      dashboard,
      `insert into keys (id, workspace_id, api_id, hash, start, name, created_at)
       select 'key_' || md5(a.id || n), a.workspace_id, a.id, a.id || n, 'x', 'Key ' || n, 1000000 - n
         from apis a cross join generate_series(1, $2) as n where a.id = $1`,
      [apiId, count],
    );
    const rows = await inDatabase(dashboard, "select id from keys where api_id = $1 order by created_at desc", [apiId]);
    return { apiId, at: `/keys?api=${apiId}`, keyIds: rows.map(({ id }) => String(id)) };
  }
  const checkbox = (page: Page, name: string) => page.getByRole("checkbox", { name: `Select ${name}`, exact: true });
  const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();
  /** How many keys of the API are disabled, or deleted. */
  const countIn = async (dashboard: Dashboard, apiId: string, where: string): Promise<number> =>
    Number(
      (await inDatabase(dashboard, `select count(*) as n from keys where api_id = $1 and ${where}`, [apiId]))[0]?.n,
    );

  test("rows are selected by mouse and keyboard, singly and in ranges, without leaving the list", async ({
    dashboard,
    open,
  }) => {
    const { at } = await makeKeys(dashboard, "chosen", 8);
    const page = await open(at);
    const shows = (text: string) =>
      page.getByRole("region", { name: "Selection" }).getByText(text, { exact: true }).waitFor();
    await checkbox(page, "Key 2").click();
    await checkbox(page, "Key 5").click({ modifiers: ["Shift"] });
    await shows("4 keys selected");
    await checkbox(page, "Key 3").click();
    await shows("3 keys selected");
    await page.getByRole("row").nth(6).press("Space");
    for (const key of ["Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowUp"]) await page.keyboard.press(key);
    await shows("5 keys selected");
    expect(
      await page
        .getByRole("row")
        .nth(7)
        .evaluate((row) => row === document.activeElement),
    ).toBe(true);
    for (const name of ["Key 2", "Key 4", "Key 5", "Key 6", "Key 7"])
      expect(await checkbox(page, name).isChecked()).toBe(true);
    // One row alone is a Tab stop, and its checkbox the next.
    expect(await page.locator(".table-body [role=row][tabindex='0'], .table-body input[tabindex='0']").count()).toBe(2);
    await expectPresentable(page);
    await page.setViewportSize({ width: 1280, height: 800 });
    const all = page.getByRole("checkbox", { name: "Select all loaded keys" });
    expect(await all.evaluate((box) => (box as HTMLInputElement).indeterminate)).toBe(true);
    await all.click();
    await shows("8 keys selected");
    await press(page, "Clear the selection");
    await page.getByRole("region", { name: "Selection" }).waitFor({ state: "hidden" });
    expect(await page.locator(":focus").getAttribute("role")).toBe("row");
    await checkbox(page, "Key 1").click();
    await page.getByLabel("Search, or paste a complete key").fill("Key");
    await page.getByRole("region", { name: "Selection" }).waitFor({ state: "hidden" });
    await page.goBack();
    expect(new URL(page.url()).pathname).not.toMatch(/keys\/key_/);
  });

  test("batch change skips managed keys, names each failed key, and deletes only after the number of keys is typed", async ({
    dashboard,
    open,
    faults,
  }) => {
    faults.expect(/\b404\b/);
    const { apiId, at, keyIds } = await makeKeys(dashboard, "half done", 5);
    await inDatabase(dashboard, "update keys set manager = 'main/ApiKey/shop/half' where id = $1", [keyIds[4]]);
    const page = await open(at);
    await page.getByText("Key 5").waitFor();
    await page.getByRole("checkbox", { name: "Select all loaded keys" }).click();
    // Somebody else deletes one meanwhile.
    await dashboard.call("keys.deleteKey", { keyId: keyIds[1] ?? "" });
    await press(page, "Disable");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Skips 1 key:").waitFor();
    await dialog.getByText("Key 5: Managed by main/ApiKey/shop/half: change its manifest.").waitFor();
    expect(await countIn(dashboard, apiId, "not enabled")).toBe(0);
    await press(page, "Disable 4 keys");
    await dialog.getByText("4 of 4 keys: 3 disabled, 1 failed, 1 skipped.").waitFor();
    await dialog.getByText(`Key 2 (${keyIds[1]}): There is no key ${keyIds[1]} in the workspace.`).waitFor();
    expect(await countIn(dashboard, apiId, "not enabled")).toBe(3);
    await press(page, "Retry 1 key");
    await dialog.getByText("4 of 4 keys: 3 disabled, 1 failed, 1 skipped.").waitFor();
    await press(page, "Close");
    await page.getByText("4 keys selected", { exact: true }).last().waitFor();
    await dashboard.call("keys.deleteKey", { keyId: keyIds[0] ?? "" });
    await press(page, "Delete");
    await dialog.getByLabel("Type 3 to confirm").fill("4");
    await page.keyboard.press("Enter");
    await dialog.getByText("Type the number of keys to confirm.").waitFor();
    await dialog.getByLabel("Type 3 to confirm").fill("3");
    await page.keyboard.press("Enter");
    // A key that somebody else deleted is deleted.
    await page.getByText("3 keys deleted, 1 skipped.").waitFor();
    expect(await countIn(dashboard, apiId, "deleted_at is null")).toBe(1);
    await page.getByText("1 key selected", { exact: true }).last().waitFor();
    await press(page, "Enable");
    await page.getByRole("button", { name: "Enable 0 keys" }).press("Enter");
    await dialog.getByText("None of the selected keys can be enabled.").waitFor();
  });

  test("batch change waits after 429, asks before the user leaves it, and after Stop resumes with the remaining keys", async ({
    dashboard,
    open,
    context,
    faults,
  }) => {
    faults.expect(/\b429\b/);
    const { apiId } = await makeKeys(dashboard, "stopped", 24);
    let [calls, running, most] = [0, 0, 0];
    await context.route("**/v2/keys.updateKey", async (route) => {
      calls += 1;
      most = Math.max(most, ++running);
      const limited = { status: 429, headers: { "retry-after": "1" }, body: "{}" };
      const isLimited = calls === 6;
      await new Promise((resolve) => setTimeout(resolve, 60));
      running -= 1;
      await (isLimited ? route.fulfill(limited) : route.continue());
    });
    const page = await open(`/apis/${apiId}`);
    await page.getByRole("link", { name: "All keys of the API" }).click();
    await page.getByText("Key 24").waitFor();
    await page.getByRole("checkbox", { name: "Select all loaded keys" }).click();
    await press(page, "Disable");
    await press(page, "Disable 24 keys");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Waiting for the server").waitFor();
    const callsBefore = calls;
    await page.goBack();
    await dialog.getByText("Stop before the end?").waitFor();
    await press(page, "Stay");
    expect(callsBefore).toBeLessThan(12);
    await expect.poll(() => calls).toBeGreaterThan(10);
    await page.keyboard.press("Escape");
    await dialog.getByText("Stop before the end?").waitFor();
    await dialog.getByRole("button", { name: "Stop", exact: true }).last().click();
    await dialog.getByText(/Stopped: \d+ keys did not change\./).waitFor();
    const [, done = "", left = ""] = /(\d+) disabled.*Stopped: (\d+)/.exec((await dialog.innerText()) ?? "") ?? [];
    expect(Number(done) + Number(left)).toBe(24);
    expect(await countIn(dashboard, apiId, "not enabled")).toBe(Number(done));
    await press(page, `Continue with ${left} keys`);
    await page.getByText("24 keys disabled.").waitFor();
    expect([await countIn(dashboard, apiId, "not enabled"), most, calls]).toEqual([24, 4, 25]);
    // The page can be left again.
    await page.getByRole("link", { name: "Identities" }).click();
    await page.waitForURL("**/identities*");
  });

  test("batch change assigns roles and an owner, and returns to the form if a role does not exist", async ({
    dashboard,
    open,
    faults,
  }) => {
    faults.expect(/\b404\b/);
    const { at, keyIds } = await makeKeys(dashboard, "assigned", 2);
    const role = { name: "batch-role", permissions: [] };
    const { roleId } = await dashboard.call("permissions.createRole", role);
    const page = await open(at, { role: "operator" });
    await page.getByText("Key 2").waitFor();
    await page.getByRole("checkbox", { name: "Select all loaded keys" }).click();
    const assign = async (item: string): Promise<void> => {
      await press(page, "Assign");
      await page.getByRole("menuitem", { name: item }).click();
    };
    const dialog = page.getByRole("dialog");
    const keys = async () => Promise.all(keyIds.map((keyId) => dashboard.call("keys.getKey", { keyId })));
    await assign("Add roles");
    await dialog.getByLabel("Roles").fill("batch-role");
    await dialog.getByLabel("Roles").press("Tab");
    await dialog.getByText("batch-role", { exact: true }).waitFor();
    // Somebody else deletes the role meanwhile.
    await dashboard.call("permissions.deleteRole", { role: roleId });
    await press(page, "Add roles to 2 keys");
    await dialog.getByText("There is no role batch-role in the workspace.").waitFor();
    await dashboard.call("permissions.createRole", role);
    await press(page, "Back");
    await press(page, "Add roles to 2 keys");
    await page.getByText("2 keys changed.").waitFor();
    for (const { roles } of await keys()) expect(roles).toEqual(["batch-role"]);
    await assign("Remove roles");
    await dialog.getByLabel("Roles").fill("batch-role");
    await dialog.getByLabel("Roles").press("Tab");
    await press(page, "Remove roles from 2 keys");
    await expect.poll(async () => (await keys()).flatMap(({ roles = [] }) => roles)).toEqual([]);
    await dialog.waitFor({ state: "hidden" });
    await assign("Set the owner");
    await dialog.getByLabel("Owner").fill("batch.owner");
    await dialog.getByLabel("Owner").press("Tab");
    await press(page, "Set the owner of 2 keys");
    await expect.poll(() => page.getByRole("row").getByText("batch.owner").count()).toBe(2);
  });

  test("viewer sees why selected keys cannot be changed", async ({ dashboard, open }) => {
    const { at } = await makeKeys(dashboard, "viewed", 1);
    const page = await open(at, { role: "viewer" });
    await page.getByRole("row").nth(1).press("Space");
    for (const name of ["Enable", "Disable", "Delete"]) {
      const button = page.getByRole("button", { name, exact: true });
      expect(await button.getAttribute("aria-disabled")).toBe("true");
      expect(await button.getAttribute("title")).toContain("Your role lacks api.*.");
    }
    await page.getByRole("button", { name: "Delete", exact: true }).press("Enter");
    expect(await page.getByRole("dialog").count()).toBe(0);
  });
});

describe("CSV", () => {
  test("CSV key import hashes keys in the browser, lists rejected rows and can resume", async ({
    dashboard,
    open,
    context,
    faults,
  }) => {
    faults.expect(/ERR_FAILED|400/);
    const { apiId } = await dashboard.call("apis.createApi", { name: "imported" });
    const { key: existing } = await dashboard.call("keys.createKey", { apiId });
    const plain = Array.from({ length: 430 }, (_, n) => `secret-of-customer-${n}`);
    const lines = [
      "key,hash,name,external_id,credits,permissions",
      ...plain.map((key, n) => `${key},,"Name ${n}, ""quoted""",owner.${n % 7},${n},imported.read`),
      `,${hashOf("known by its hash")},By hash,,,`,
      `${existing},,Twice,,,`,
      // A slug has no spaces: that rule is the server's alone.
      `refused-by-the-server,,Refused,,,"[""no spaces""]"`,
      "no-number,,Wrong,,many,",
    ];
    const page = await open(`/keys?api=${apiId}`);
    const bodies: string[] = [];
    page.on("request", (request) => void bodies.push(request.postData() ?? ""));
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Import from CSV" }).click();
    const dialog = page.getByRole("dialog");
    await dialog
      .getByLabel("CSV file")
      .setInputFiles({ name: "keys.csv", mimeType: "text/csv", buffer: Buffer.from(lines.join("\r\n")) });
    await dialog.getByText("Line 435: credits is not an integer").waitFor();
    await dialog.getByRole("cell", { name: "to be hashed, 20 characters" }).first().waitFor();
    // The second portion is lost on its way.
    let calls = 0;
    await context.route("**/v2/keys.migrateKeys", (route) => (++calls === 2 ? route.abort() : route.continue()));
    await dialog.getByRole("button", { name: "Import 433 keys" }).click();
    await dialog.getByText("200 of 433 rows").waitFor();
    await dialog.getByText("The server did not respond.").waitFor();
    await dialog.getByRole("button", { name: "Continue from row 201" }).click();
    await dialog.getByText("433 of 433 rows, 431 keys imported, 2 not. Done.").waitFor();
    await dialog.getByText("Line 433: exists already; nothing was changed").waitFor();
    await dialog.getByText(/Line 434: permissions\[0\]/).waitFor();
    for (const key of [plain[0], plain[429], existing]) {
      expect(bodies.join("\n")).not.toContain(JSON.stringify(key));
    }
    for (const key of [plain[0] ?? "", plain[250] ?? "", "known by its hash"]) {
      expect(await dashboard.call("keys.verifyKey", { key })).toMatchObject({
        valid: key !== plain[0],
        keyId: expect.any(String),
      });
    }
    const [first] = await dashboard.call("admin.searchKeys", { hash: hashOf(plain[1] ?? "") });
    expect(first).toMatchObject({ name: 'Name 1, "quoted"', externalId: "owner.1" });
  });

  test("CSV key export covers all pages and contains no secrets or formulas", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "exported" });
    const secrets: string[] = [];
    for (const name of ["=cmd|'/c calc'!A1", "+1", "-1", "@SUM(A1)", 'plain, "quoted"']) {
      secrets.push(
        (await dashboard.call("keys.createKey", { apiId, name, meta: { note: name }, externalId: "ex.owner" })).key,
      );
    }
    await inDatabase(
      dashboard,
      `insert into keys (id, workspace_id, api_id, hash, start, name, created_at)
       select 'key_export' || n, a.workspace_id, a.id, 'export' || n, 'x', 'Many ' || n, n
         from apis a cross join generate_series(1, 250) as n where a.id = $1`,
      [apiId],
    );
    const page = await open(`/keys?api=${apiId}`, { role: "viewer" });
    await page.getByRole("button", { name: "More", exact: true }).click();
    await page.getByRole("menuitem", { name: "Export as CSV" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("dialog").getByRole("button", { name: "Export" }).click();
    const file = await download;
    expect(file.suggestedFilename()).toBe(`keys-${apiId}.csv`);
    const text = await readFile(await file.path(), "utf8");
    await page.getByText("The file has 255 keys.").waitFor();
    expect(text.trimEnd().split("\r\n")).toHaveLength(256);
    expect(text).not.toMatch(/(^|,)"?[=+\-@]/m);
    expect(text).toContain(`"'=cmd|'/c calc'!A1"`);
    for (const secret of secrets) expect(text).not.toContain(secret);
  });
});
