import type { Page } from "playwright-core";
import { afterEach, beforeEach, describe, expect } from "vitest";
import { insertNewRootKey } from "../../api-server/domain/administration/root-keys.ts";
import { OPERATOR_PERMISSIONS } from "../../core/permissions/operator.ts";
import { createPool } from "../../postgres/pool.ts";
import { expectAccessible, expectNoSideways } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

const HOSTILE = `<img src=x onerror=alert(1)>"'& \u202Egnp.exe`;

const idOf = async (dashboard: Dashboard, name: string): Promise<string> => {
  const [row] = await inDatabase(dashboard, "select id from workspaces where name = $1", [name]);
  return String(row?.id);
};

const makeWorkspace = async ({ call }: Dashboard, name: string): Promise<string> =>
  (await call("admin.createWorkspace", { name })).workspaceId;

/** What is stored of a workspace, and of its analytics; undefined for the default. */
async function stored(dashboard: Dashboard, workspaceId: string) {
  const text = `select w.name, w.enabled, w.quota_per_minute::int as quota, s.enabled as analytics, s.queries_per_hour::int as queries,
                       s.timeout_ms::int as timeout
                  from workspaces w left join analytics_settings s on s.workspace_id = w.id
                 where w.id = $1`;
  return (await inDatabase(dashboard, text, [workspaceId]))[0];
}

/** The newest row of a workspace's audit log: who, and what. */
async function lastAudit(dashboard: Dashboard, workspaceId: string) {
  const text = `select event, actor ->> 'type' as type, actor ->> 'name' as name, before, after
                  from audit_log where workspace_id = $1 order by time desc, id limit 1`;
  return (await inDatabase(dashboard, text, [workspaceId]))[0];
}

/** The bodies of the calls that the page sends from now on. */
function sentTo(page: Page, procedure: string): unknown[] {
  const sent: unknown[] = [];
  page.on("request", (request) => {
    if (request.url().endsWith(`/v2/${procedure}`)) sent.push(request.postDataJSON());
  });
  return sent;
}

const rowOf = (page: Page, label: string) => page.getByRole("row").filter({ hasText: label });
const choose = async (page: Page, workspace: string, item: string): Promise<void> => {
  await page.getByRole("button", { name: `More of ${workspace}` }).click();
  await page.getByRole("menuitem", { name: item }).click();
};

describe("the settings", () => {
  test("settings page shows each limit with value, default and unit", async ({ dashboard, open }) => {
    const { bounds } = await dashboard.call("admin.getSettings", {});
    const page = await open("/settings");
    const table = page.getByRole("table", { name: "Limits of usage queries" });
    await table.getByText("1,000 queries").first().waitFor();
    const rows = await table.getByRole("row").allTextContents();
    expect(rows).toHaveLength(bounds.length + 1);
    for (const [at, { name, byDefault }] of bounds.entries()) {
      const row = rows[at + 1] ?? "";
      // In words, not by the name of the member.
      expect(row).not.toContain(name);
      expect(row).toMatch(new RegExp(`${byDefault.toLocaleString("en")} (?:rows|s|MB|MiB|queries|days)$`));
    }
    const id = await idOf(dashboard, "default");
    await page.getByText(id).waitFor();
    await page.getByText("unlimited (default: unlimited)").waitFor();
    await expectAccessible(page);
  });

  test("settings form validates fields, shows changes and saves once", async ({ dashboard, open }) => {
    const id = await idOf(dashboard, "default");
    const page = await open("/settings");
    await page.getByRole("button", { name: "Change the limits" }).click();
    const dialog = page.getByRole("dialog");
    const sent = sentTo(page, "admin.updateQueryLimits");
    const save = dialog.getByRole("button", { name: "Save" });
    expect(await save.getAttribute("title")).toBe("No changes yet.");
    const perHour = dialog.getByLabel("Queries per hour", { exact: true });
    const seconds = dialog.getByLabel("Run time of a query (s)");
    await perHour.fill("250");
    await seconds.fill("31");
    await dialog.getByText("An integer from 1 to 30; empty for the default.").waitFor();
    expect([await perHour.getAttribute("aria-invalid"), await seconds.getAttribute("aria-invalid")]).toEqual([
      null,
      "true",
    ]);
    await save.click({ force: true });
    await expectAccessible(page);
    await seconds.fill("7");
    const changes = dialog.getByRole("table", { name: "Changes" }).getByRole("row");
    expect((await changes.allTextContents()).slice(1)).toEqual([
      "Run time of a query10 s7 s",
      "Queries per hour1,000 queries250 queries",
    ]);
    await save.dblclick();
    await page.getByText("2 limits changed.").waitFor();
    expect(sent).toEqual([{ querySeconds: 7, queriesPerHour: 250 }]);
    await rowOf(page, "Queries per hour").getByText("250 queries").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ queries: 250, timeout: 7000 });
    expect(await lastAudit(dashboard, id)).toEqual({
      event: "workspace.update",
      ...{ type: "user", name: "Ada (admin)" },
      before: { queriesPerHour: null, timeoutMs: null },
      after: { queriesPerHour: 250, timeoutMs: 7000 },
    });

    await page.getByRole("button", { name: "Change the limits" }).click();
    await perHour.fill("");
    await seconds.fill("");
    await dialog.getByText("1,000 queries, the default", { exact: true }).waitFor();
    await save.click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await stored(dashboard, id)).toMatchObject({ queries: null, timeout: null });
  });

  test("settings page disables and enables usage by keyboard", async ({ dashboard, open, faults }) => {
    // The page of usage is refused then.
    faults.expect(/status of 412/);
    const id = await idOf(dashboard, "default");
    const page = await open("/settings");
    await page.getByText("Usage queries are on").waitFor();
    const tabTo = async (name: string): Promise<void> => {
      for (let presses = 0; presses < 60; presses += 1) {
        await page.keyboard.press("Tab");
        if ((await page.evaluate(() => document.activeElement?.textContent)) === name) return;
      }
      throw new Error(`Tab does not lead to ${name}`);
    };
    await tabTo("Turn off");
    await page.keyboard.press("Enter");
    await page.getByText("usage is still counted.").waitFor();
    await tabTo("Turn usage queries off");
    await page.keyboard.press("Enter");
    await page.getByText("Usage queries are off.").waitFor();
    await page.getByText("Usage queries fail with 412").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ analytics: false });
    expect(await lastAudit(dashboard, id)).toMatchObject({
      name: "Ada (admin)",
      before: { analytics: true },
      after: { analytics: false },
    });
    const usage = await open("/usage");
    await usage.getByText("An admin of the workspace can turn them on").first().waitFor();
    await usage.close();
    await tabTo("Turn on");
    await page.keyboard.press("Enter");
    await tabTo("Turn usage queries on");
    await page.keyboard.press("Enter");
    await page.getByText("Usage queries are on.").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ analytics: true });
  });

  test("settings page sets the quota, and warns of a quota that would block the page", async ({ dashboard, open }) => {
    const id = await idOf(dashboard, "default");
    const page = await open("/settings");
    await page.getByRole("button", { name: "Change the quota" }).click();
    const dialog = page.getByRole("dialog");
    const field = dialog.getByLabel("Requests per minute");
    await field.fill("many");
    await dialog.getByText("An integer from 0 to 1,000,000,000; empty for no quota.").waitFor();
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    await field.fill("5");
    await dialog.getByText("This page shows the workspace, and dashboard pages send about 60 requests").waitFor();
    await field.fill("0");
    await dialog.getByText("All requests of its root keys").waitFor();
    await field.fill("100,000");
    expect(await dialog.getByRole("alert").count()).toBe(0);
    await dialog.getByText("Before: unlimited.").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("100,000 per minute (default: unlimited)").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ quota: 100_000 });
    expect(await lastAudit(dashboard, id)).toMatchObject({
      name: "Ada (admin)",
      before: { quotaPerMinute: null },
      after: { quotaPerMinute: 100_000 },
    });
    await page.getByRole("button", { name: "Change the quota" }).click();
    await field.fill("");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("unlimited (default: unlimited)").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ quota: null });
  });

  test("settings page shows the values of the selected workspace", async ({ dashboard, open }) => {
    const id = await makeWorkspace(dashboard, "second-one");
    const page = await open(`/settings?workspace=${id}`);
    await page.getByText(id).waitFor();
    await page.getByRole("button", { name: "Change the limits" }).click();
    await page.getByRole("dialog").getByLabel("Queries per hour", { exact: true }).fill("0");
    await page.keyboard.press("Enter");
    await page.getByText("1 limit changed.").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ name: "second-one", queries: 0 });
    expect(await stored(dashboard, await idOf(dashboard, "default"))).toMatchObject({ queries: null });
    expect(await lastAudit(dashboard, id)).toMatchObject({ name: "Ada (admin)", after: { queriesPerHour: 0 } });
  });

  test.for(["viewer", "operator"] as const)(
    "settings page is read-only for a %s and names the missing role",
    async (role, { open }) => {
      const page = await open("/settings", { role });
      await rowOf(page, "Queries per hour").getByText("1,000 queries").first().waitFor();
      await page.getByText("workspace.*.update_workspace").waitFor();
      expect(await page.getByText("installation.*.update_workspace").count()).toBe(2);
      expect(await page.getByRole("main").getByRole("button").count()).toBe(0);
      await expectAccessible(page);
    },
  );

  test("settings page lets a workspace admin enable and disable usage, but not change limits", async ({
    dashboard,
    open,
  }) => {
    const id = await idOf(dashboard, "default");
    const page = await open("/settings", { roleIn: "default" });
    const buttons = page.getByRole("main").getByRole("button");
    await page.getByRole("button", { name: "Turn off" }).click();
    await page.getByRole("button", { name: "Turn usage queries off" }).click();
    await page.getByRole("button", { name: "Turn on" }).click();
    await page.getByRole("button", { name: "Turn usage queries on" }).click();
    await page.getByText("Usage queries are on.").waitFor();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(await buttons.allTextContents()).toEqual(["Turn off"]);
    expect(await stored(dashboard, id)).toMatchObject({ analytics: true });
  });
});

test("every settings dialog fits a phone and is accessible in the dark theme", async ({ dashboard, open }) => {
  await makeWorkspace(dashboard, "of-dialogs");
  const how = { width: 375, colorScheme: "dark" } as const;
  const closed = async (page: Page): Promise<void> => {
    await page.getByRole("dialog").waitFor();
    await expectAccessible(page);
    await expectNoSideways(page);
    await page.getByRole("button", { name: /^(Cancel|Close)$/ }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  const settings = await open("/settings", how);
  for (const name of ["Change the quota", "Turn off", "Change the limits"]) {
    await settings.getByRole("button", { name }).click();
    const field = settings.getByRole("dialog").getByRole("textbox").first();
    if ((await field.count()) > 0) await field.fill("-1");
    await closed(settings);
  }
  const page = await open("/workspaces?search=of-dialogs", how);
  await page.getByRole("button", { name: "Create a workspace" }).click();
  await closed(page);
  for (const item of ["Rename", "Change the quota", "Disable"]) {
    await choose(page, "of-dialogs", item);
    await closed(page);
  }
});

describe("a change that fails", () => {
  test("settings form keeps its input after a connection or session loss", async ({
    dashboard,
    open,
    context,
    faults,
  }) => {
    faults.expect(/ERR_FAILED|status of 401/);
    const page = await open("/settings");
    await page.getByRole("button", { name: "Change the limits" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Queries per hour", { exact: true }).fill("77");
    await context.route("**/v2/admin.updateQueryLimits", (route) => route.abort());
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Check the connection to the server, then try again.").waitFor();
    await context.unroute("**/v2/admin.updateQueryLimits");
    const cookies = await context.cookies();
    await context.clearCookies();
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Your session has ended: sign in again.").waitFor();
    await context.addCookies(cookies);
    expect(await dialog.getByLabel("Queries per hour", { exact: true }).inputValue()).toBe("77");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("1 limit changed.").waitFor();
    const id = await idOf(dashboard, "default");
    expect(await stored(dashboard, id)).toMatchObject({ queries: 77 });
    await dashboard.call("admin.updateQueryLimits", { queriesPerHour: null });
  });

  test("settings form that fails because of a lost role says who can restore it", async ({
    dashboard,
    open,
    faults,
  }) => {
    faults.expect(/status of 403/);
    const id = await makeWorkspace(dashboard, "role-taken");
    const page = await open("/settings", { roleIn: "role-taken" });
    await page.getByRole("button", { name: "Turn off" }).click();
    const roles = (role: string) => JSON.stringify([{ workspace: id, role }]);
    await inDatabase(dashboard, "update sessions set roles = $1 where roles = $2", [roles("viewer"), roles("admin")]);
    await page.getByRole("button", { name: "Turn usage queries off" }).click();
    await page.getByRole("dialog").getByText("Your role lacks this permission in the workspace.").waitFor();
    await page.getByRole("dialog").getByText("workspace.*.update_workspace").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ analytics: null });
  });
});

describe("workspaces", () => {
  test("dashboard creates, finds and selects workspaces and validates names", async ({ dashboard, open, faults }) => {
    faults.expect(/status of 409/);
    const page = await open("/workspaces");
    await page.getByRole("button", { name: "Create a workspace" }).click();
    const dialog = page.getByRole("dialog");
    const name = dialog.getByLabel("Name");
    const sent = sentTo(page, "admin.createWorkspace");
    for (const refused of [HOSTILE, "ws_like_an_id", "-x", "a b"]) {
      await name.fill(refused);
      await dialog.getByText("A name has 1 to 63 letters").waitFor();
      await page.keyboard.press("Enter");
    }
    expect(sent).toEqual([]);
    await name.fill("default");
    await page.keyboard.press("Enter");
    await dialog.getByText("This name belongs to another workspace").waitFor();
    await dialog.getByText("Choose another name.").waitFor();
    expect(await name.getAttribute("aria-invalid")).toBe("true");
    await name.fill("team-shop");
    expect(await name.getAttribute("aria-invalid")).toBeNull();
    await page.keyboard.press("Enter");
    await page.getByText("Workspace team-shop created.").waitFor();
    const id = await idOf(dashboard, "team-shop");
    expect(await stored(dashboard, id)).toMatchObject({ enabled: true, quota: null });
    expect(await lastAudit(dashboard, id)).toMatchObject({
      event: "workspace.create",
      ...{ type: "user", name: "Ada (admin)" },
    });

    await page.getByLabel("Name or id contains").fill("TEAM-sh");
    await expect.poll(() => page.getByRole("button", { name: /^More of/ }).count()).toBe(1);
    await page.getByRole("link", { name: "team-shop" }).click();
    await page.getByRole("heading", { name: "Settings" }).waitFor();
    await page.getByText(id).waitFor();
    expect(await page.getByRole("combobox", { name: "Workspace" }).inputValue()).toBe(id);
  });

  test("dashboard renames workspaces except the default one", async ({ dashboard, open }) => {
    const id = await makeWorkspace(dashboard, "before-it");
    const page = await open(`/workspaces?search=${id}`);
    await choose(page, "before-it", "Rename");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("users whose role depends on the name").waitFor();
    expect(await dialog.getByRole("button", { name: "Rename" }).getAttribute("title")).toBe("No changes yet.");
    await dialog.getByLabel("Name").fill("after-it");
    await dialog.getByRole("button", { name: "Rename" }).click();
    await page.getByText("Workspace renamed to after-it.").waitFor();
    await page.getByRole("link", { name: "after-it" }).waitFor();
    await expect.poll(() => page.getByRole("combobox", { name: "Workspace" }).textContent()).toContain("after-it");
    expect(await stored(dashboard, id)).toMatchObject({ name: "after-it", enabled: true });
    expect(await lastAudit(dashboard, id)).toMatchObject({
      ...{ type: "user", name: "Ada (admin)" },
      before: { name: "before-it" },
      after: { name: "after-it" },
    });

    await page.getByLabel("Name or id contains").fill("default");
    await page.getByRole("button", { name: "More of default" }).click();
    const rename = page.getByRole("menuitem", { name: "Rename" });
    expect(await rename.textContent()).toContain(
      "The default workspace cannot be renamed, because servers find it by its name at startup.",
    );
    expect(await rename.getAttribute("aria-disabled")).toBe("true");
  });

  test("dashboard disables a workspace with its keys and enables it again", async ({ dashboard, open }) => {
    const id = await makeWorkspace(dashboard, "to-stop");
    const pool = createPool(dashboard.databaseUrl, { connectionsMax: 1 });
    const make = (name: string, permissions: readonly string[]) =>
      insertNewRootKey(pool, { workspaceId: id, permissions, name });
    const [{ rootKey }] = await Promise.all([
      make("backend", ["api.*.create_api", "api.*.create_key", "api.*.verify_key"]),
      make("of the operator", OPERATOR_PERMISSIONS),
    ]);
    await pool.end();
    const call = async (procedure: string, body: object) => {
      const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(body) };
      const response = await fetch(`${dashboard.url}/v2/${procedure}`, init);
      return { status: response.status, data: ((await response.json()) as { data?: Record<string, string> }).data };
    };
    const { data: { apiId } = {} } = await call("apis.createApi", { name: "of to-stop" });
    const { data: { key } = {} } = await call("keys.createKey", { apiId });
    expect((await call("keys.verifyKey", { key })).data).toMatchObject({ code: "VALID" });

    const page = await open(`/workspaces?search=${id}`);
    await choose(page, "to-stop", "Disable");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Keys verify as FORBIDDEN").waitFor();
    await dialog.getByText("The operator may use this root key").waitFor();
    expect(await dialog.getByRole("alert").textContent()).toContain("of the operator");
    expect(await dialog.textContent()).toMatch(
      /Root keys that stop working:.*backend \(used \d{4}|backend \(never used/,
    );
    expect(await dialog.textContent()).not.toContain("This page shows the workspace");
    await expectAccessible(page);
    await dialog.getByLabel(/to confirm/).fill("to-sto");
    await page.keyboard.press("Enter");
    expect(await dialog.getByRole("button", { name: "Disable the workspace" }).getAttribute("aria-disabled")).toBe(
      "true",
    );
    expect(await stored(dashboard, id)).toMatchObject({ enabled: true });
    await dialog.getByLabel(/to confirm/).fill("to-stop");
    await dialog.getByRole("button", { name: "Disable the workspace" }).click();
    await page.getByText("Workspace to-stop disabled.").waitFor();
    await rowOf(page, "to-stop").getByText("disabled").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ enabled: false });
    expect((await call("keys.verifyKey", { key })).status).toBe(403);
    expect(await lastAudit(dashboard, id)).toMatchObject({
      ...{ type: "user", name: "Ada (admin)" },
      before: { enabled: true },
      after: { enabled: false },
    });

    await choose(page, "to-stop", "Enable");
    await page.getByRole("button", { name: "Enable the workspace" }).click();
    await rowOf(page, "to-stop").getByText("enabled").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ enabled: true });
    expect((await call("keys.verifyKey", { key })).data).toMatchObject({ code: "VALID" });
  });

  test("dashboard sets a workspace quota from the list", async ({ dashboard, open }) => {
    const id = await makeWorkspace(dashboard, "metered");
    const page = await open(`/workspaces?search=${id}`);
    await choose(page, "metered", "Change the quota");
    await page.getByLabel("Requests per minute").fill("0");
    // It is not the one that the page shows, so the page goes on in its own.
    expect(await page.getByRole("dialog").textContent()).not.toContain("This page shows the workspace");
    await page.keyboard.press("Enter");
    await rowOf(page, "metered").getByText("0 per minute").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ quota: 0 });
  });

  test("workspace list shows hostile names as text", async ({ dashboard, open, onTestFinished }) => {
    const id = await makeWorkspace(dashboard, "hostile");
    const long = await makeWorkspace(dashboard, "long");
    const rename = "update workspaces set name = $2 where id = $1";
    onTestFinished(async () => {
      await inDatabase(dashboard, "update workspaces set name = id where id = any($1)", [[id, long]]);
    });
    await inDatabase(dashboard, rename, [id, HOSTILE]);
    await inDatabase(dashboard, rename, [long, "W".repeat(300)]);
    const page = await open("/workspaces", { width: 375 });
    // The list is sorted by id, which is random, and renders only the rows in view.
    for (const shown of [long, id]) {
      await page.getByLabel("Name or id contains").fill(shown);
      await page.getByRole("table").getByText(shown).waitFor();
      await expectNoSideways(page);
    }
    await page.locator("bdi").filter({ hasText: "<img src=x" }).waitFor();
    for (const item of ["Rename", "Change the quota", "Disable"]) {
      await choose(page, HOSTILE, item);
      await page.getByRole("dialog").getByRole("heading").filter({ hasText: "<img src=x" }).waitFor();
      await expectNoSideways(page);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    }
    const settings = await open(`/settings?workspace=${id}`, { width: 375 });
    await settings.locator("main bdi").filter({ hasText: "<img src=x" }).waitFor();
    await expectNoSideways(settings);
    for (const one of [page, settings]) expect(await one.locator('img[src="x"]').count()).toBe(0);
  });

  test.for(["viewer", "operator", "admin"] as const)(
    "workspace list is not loaded for a %s of one workspace",
    async (role, { open }) => {
      const page = await open("/workspaces", { role, roleIn: "default" });
      await page.getByText("installation.*.read_workspace").waitFor();
      expect(await page.getByRole("main").getByRole("button").count()).toBe(0);
      expect(await page.getByRole("table").count()).toBe(0);
    },
  );
});

describe("a user who would be locked out", () => {
  // What other tests made would be other workspaces to go to.
  beforeEach<{ dashboard: Dashboard }>(async ({ dashboard }) => {
    await inDatabase(dashboard, "update workspaces set enabled = (name = 'default'), quota_per_minute = null");
  });
  afterEach<{ dashboard: Dashboard }>(async ({ dashboard }) => {
    await inDatabase(dashboard, "update workspaces set enabled = true, quota_per_minute = null");
  });

  test("dashboard blocks disabling the last enabled workspace without sending a request", async ({
    dashboard,
    open,
  }) => {
    const id = await idOf(dashboard, "default");
    const page = await open("/workspaces?search=default");
    await choose(page, "default", "Disable");
    await page.getByText("It is the only enabled workspace").waitFor();
    expect(await page.getByRole("button", { name: "Disable the workspace" }).count()).toBe(0);
    await page.getByRole("button", { name: "Close" }).click();
    expect(await stored(dashboard, id)).toMatchObject({ enabled: true });
  });

  test.for([
    { item: "Disable", field: /to confirm/, text: "default", button: "Disable the workspace" },
    { item: "Change the quota", field: /Requests per minute/, text: "0", button: "Save" },
  ])(
    "api-server rejects disabling the last enabled workspace: $item",
    async ({ item, field, text, button }, { dashboard, open, faults }) => {
      faults.expect(/status of 409/);
      const id = await idOf(dashboard, "default");
      const other = await makeWorkspace(dashboard, `closed-since-${text}`);
      const page = await open(`/workspaces?workspace=${id}&search=default`);
      await choose(page, "default", item);
      await inDatabase(dashboard, "update workspaces set enabled = false where id = $1", [other]);
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel(field).fill(text);
      await dialog.getByRole("button", { name: button }).click();
      await dialog.getByText("the API could not be called to undo the change").waitFor();
      await dialog.getByText("Enable another workspace first").waitFor();
      expect(await stored(dashboard, id)).toMatchObject({ enabled: true, quota: null });
    },
  );

  test("dashboard warns before it disables its own workspace, and then opens another one", async ({
    dashboard,
    open,
    faults,
  }) => {
    // Of the page that is opened in it when it is disabled.
    faults.expect(/status of 403/);
    const id = await makeWorkspace(dashboard, "looked-at");
    const page = await open(`/workspaces?workspace=${id}&search=looked`);
    await choose(page, "looked-at", "Disable");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("This page shows the workspace.").waitFor();
    expect(await dialog.getByRole("alert").first().textContent()).toContain("default");
    await dialog.getByLabel(/to confirm/).fill("looked-at");
    await dialog.getByRole("button", { name: "Disable the workspace" }).click();
    await page.getByText("Workspace looked-at disabled.").waitFor();
    await rowOf(page, "looked-at").getByText("disabled").waitFor();
    expect(new URL(page.url()).searchParams.get("workspace")).toBe(await idOf(dashboard, "default"));
    expect(await stored(dashboard, id)).toMatchObject({ enabled: false });

    const closed = await open(`/apis?workspace=${id}`);
    await closed.getByText("The workspace looked-at is disabled").waitFor();
    await closed.getByRole("combobox", { name: "Workspace" }).waitFor();
    expect(await closed.getByRole("combobox", { name: "Workspace" }).textContent()).toContain("looked-at (disabled)");
    await closed.getByRole("link", { name: "Enable it from another workspace" }).click();
    await choose(closed, "looked-at", "Enable");
    await closed.getByRole("button", { name: "Enable the workspace" }).click();
    await rowOf(closed, "looked-at").getByText("enabled").waitFor();
    expect(await stored(dashboard, id)).toMatchObject({ enabled: true });
    expect(await lastAudit(dashboard, id)).toMatchObject({ name: "Ada (admin)", after: { enabled: true } });
  });

  test("dashboard opens the first enabled workspace, or explains who can help", async ({ dashboard, open, faults }) => {
    faults.expect(/status of 403/);
    await makeWorkspace(dashboard, "zz-open");
    await inDatabase(dashboard, "update workspaces set enabled = (name = 'zz-open')");
    const page = await open("/settings");
    await page.getByText(await idOf(dashboard, "zz-open")).waitFor();
    await page.context().clearCookies();
    const viewer = await open("/settings", { role: "viewer" });
    await viewer.getByText("The workspace default is disabled").waitFor();
    await viewer.getByText("postern workspace enable").waitFor();
  });
});
