import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect } from "vitest";
import { expectNoSideways } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();
const run = promisify(execFile);
const HOSTILE = `<img src=x onerror=alert(1)> \u202Egnp.exe`;

const make = ({ call }: Dashboard, name: string, more: object = {}) =>
  call("admin.createRootKey", { name, permissions: ["api.*.create_api"], ...more });
const statusOf = async ({ url }: Dashboard, rootKey: string): Promise<number> => {
  const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
  return (await fetch(`${url}/v2/workspaces.getWorkspace`, { method: "POST", headers, body: "{}" })).status;
};

describe("a new root key", () => {
  test("root key form shows a working key once and discards it on close", async ({ dashboard, open }) => {
    const page = await open("/root-keys");
    await page.getByRole("button", { name: "Create a root key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("billing of customers");
    await page.getByRole("textbox", { name: "Environment" }).last().fill("production");
    await page.getByLabel("Which").click();
    await page.getByRole("option", { name: "All APIs" }).click();
    await page.getByRole("checkbox", { name: "create api" }).check();
    await page.getByRole("checkbox", { name: "verify key" }).check();
    await page.getByText("api.*.verify_key").waitFor();
    await page.getByText("to all APIs or namespaces").waitFor();
    const outcome = page.getByRole("dialog").locator(".form-outcome");
    await expect
      .poll(() => outcome.textContent())
      .toBe(
        "A root key named “billing of customers” that may create api, verify key on all APIs and their keys; never expires.",
      );
    await page.getByRole("button", { name: "1 year" }).click();
    await expect.poll(() => outcome.textContent()).toContain("; expires at the end of ");
    await page.getByRole("button", { name: "Never" }).click();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByText("The key is shown only once").waitFor();
    const [secret = "", line = ""] = await page.locator("figure pre").allTextContents();
    expect(secret).toMatch(/^postern_\w{30,}$/);
    const { stdout } = await run("bash", ["-c", `${line} -s`]);
    expect(JSON.parse(stdout).data).toMatchObject({ name: "default" });
    await page.keyboard.press("Escape");
    await page.getByText("The key is shown only once").waitFor();
    await page.getByRole("button", { name: "Close" }).click();
    await page.getByRole("row").filter({ hasText: "billing of customers" }).waitFor();
    const left = await page.evaluate(() =>
      JSON.stringify([
        document.documentElement.outerHTML,
        { ...localStorage },
        { ...sessionStorage },
        location.href,
        history.state,
      ]),
    );
    expect(left).not.toContain(secret);
    const [row] = await dashboard.call("admin.listRootKeys", { search: "billing of customers" });
    expect(row).toMatchObject({
      environment: "production",
      permissions: ["api.*.create_api", "api.*.verify_key"],
    });
  });

  test("root key preset applies to the chosen API", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "the chosen one" });
    const page = await open("/root-keys");
    await page.getByRole("button", { name: "Create a root key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("verifier of one");
    await page.getByLabel("Which").fill("chosen");
    await page.getByRole("option", { name: /the chosen one/ }).click();
    await page.getByRole("button", { name: "Verify keys of one API" }).click();
    await page.getByText(`api.${apiId}.verify_key`).waitFor();
    expect(await page.getByText("to all APIs or namespaces").count()).toBe(0);
  });
});

describe("scope of a new root key", () => {
  test.for(["Enter", "Tab"])(
    "%s in the list of APIs chooses the first match and submits nothing",
    async (key, { dashboard, open, context }) => {
      const name = `${key} scope`;
      await dashboard.call("apis.createApi", { name: `before ${key}` });
      const page = await open("/root-keys");
      await page.getByRole("button", { name: "Create a root key" }).click();
      await page.getByLabel("Name", { exact: true }).fill(name);
      const verify = page.getByRole("checkbox", { name: "verify key" });
      expect(await verify.isDisabled()).toBe(true);
      const which = page.getByLabel("Which");
      await which.click();
      await page.getByRole("option", { name: `before ${key}` }).waitFor();
      const { apiId } = await dashboard.call("apis.createApi", { name });
      // The server is slow, so that Enter is pressed while the list still has the matches of an earlier text.
      const { promise: responds, resolve: respond } = Promise.withResolvers<void>();
      await context.route("**/v2/admin.listApis", async (route) => {
        await responds;
        await route.continue();
      });
      await which.pressSequentially(`${key} sc`);
      await page.keyboard.press("Enter");
      expect(await verify.isDisabled()).toBe(true);
      respond();
      await which.fill(name);
      await page.locator("[role=option][data-highlighted]").filter({ hasText: apiId }).waitFor();
      await page.keyboard.press(key);
      await expect.poll(() => which.inputValue()).toBe(name);
      expect(await page.getByText("The key is shown only once").count()).toBe(0);
      await verify.check();
      await page.getByText(`api.${apiId}.verify_key`).waitFor();
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByText("The key is shown only once").waitFor();
      const [row] = await dashboard.call("admin.listRootKeys", { search: name });
      expect(row?.permissions).toEqual([`api.${apiId}.verify_key`]);
    },
  );

  test.for(["all", "api", "created later", "a"])(
    "typing %s while APIs load never chooses all APIs",
    async (typed, { open, context }) => {
      const page = await open("/root-keys");
      // The list of APIs never arrives.
      await context.route("**/v2/admin.listApis", () => new Promise<void>(() => {}));
      await page.getByRole("button", { name: "Create a root key" }).click();
      await page.getByLabel("Which").pressSequentially(typed);
      for (const key of ["Enter", "Tab"]) await page.keyboard.press(key);
      expect(await page.getByRole("checkbox", { name: "verify key" }).isDisabled()).toBe(true);
    },
  );

  test("option under a resting pointer is not chosen by Tab", async ({ dashboard, open }) => {
    await dashboard.call("apis.createApi", { name: "under the pointer" });
    const page = await open("/root-keys");
    await page.getByRole("button", { name: "Create a root key" }).click();
    await page.getByLabel("Which").click();
    await page.getByRole("option", { name: "All APIs" }).hover();
    await page.locator("[role=option][data-highlighted]").getByText("All APIs").waitFor();
    await page.keyboard.press("Tab");
    await page.getByRole("listbox").waitFor({ state: "hidden" });
    expect(await page.getByRole("checkbox", { name: "verify key" }).isDisabled()).toBe(true);
  });

  test("text that matches no API selects no scope for the root key, even after Enter and Tab", async ({
    dashboard,
    open,
  }) => {
    const page = await open("/root-keys");
    await page.getByRole("button", { name: "Create a root key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("scope of nothing");
    // A permission that needs no scope makes the form complete, so that Enter could submit it.
    await page.getByLabel("Resource").selectOption("Identities");
    await page.getByRole("checkbox", { name: "read identity" }).check();
    await page.getByLabel("Resource").selectOption("APIs and their keys");
    await page.getByLabel("Which").pressSequentially("no API is called this");
    for (const key of ["Enter", "Enter", "Tab"]) await page.keyboard.press(key);
    await expect.poll(() => page.getByRole("checkbox", { name: "verify key" }).isDisabled()).toBe(true);
    expect(await dashboard.call("admin.listRootKeys", { search: "scope of nothing" })).toEqual([]);
  });
});

describe("a root key", () => {
  test("dashboard disables, enables, updates and revokes a root key", async ({ dashboard, open }) => {
    const { rootKey, rootKeyId } = await make(dashboard, "to be revoked");
    const page = await open(`/root-keys?rootKey=${rootKeyId}`);
    await page.getByRole("button", { name: "Disable", exact: true }).click();
    await page.getByRole("button", { name: "Disable the root key" }).click();
    const toast = page.getByText("Root key disabled.");
    await toast.waitFor();
    // It lies over the drawer, and an open drawer does not hide it from screen readers.
    expect(
      await toast.evaluate((element) => {
        const { x, y, width, height } = element.getBoundingClientRect();
        for (const one of document.querySelectorAll<HTMLElement>(".toasts, .toasts *"))
          one.style.pointerEvents = "auto";
        const isOnTop = element.contains(document.elementFromPoint(x + width / 2, y + height / 2));
        return (
          isOnTop && element.closest("[aria-hidden=true], [inert]") === null && element.closest("[aria-live]") !== null
        );
      }),
    ).toBe(true);
    expect(await statusOf(dashboard, rootKey)).toBe(401);
    await page.getByRole("button", { name: "Enable", exact: true }).click();
    await page.getByRole("button", { name: "Enable the root key" }).click();
    await page.getByText("Root key enabled.").waitFor();
    expect(await statusOf(dashboard, rootKey)).toBe(200);
    await page.getByRole("button", { name: "Revoke", exact: true }).click();
    await page.getByLabel(/to confirm/).fill("to be revoke");
    await page.keyboard.press("Enter");
    expect(await statusOf(dashboard, rootKey)).toBe(200);
    await page.getByLabel(/to confirm/).fill("to be revoked");
    await page.getByRole("button", { name: "Revoke the root key" }).click();
    await page.getByText("Root key revoked.").waitFor();
    expect(await statusOf(dashboard, rootKey)).toBe(401);
  });

  test("dashboard rotates a root key, and links the old key with the new key", async ({ dashboard, open }) => {
    const { rootKey, rootKeyId } = await make(dashboard, "to be rotated");
    const page = await open(`/root-keys?rootKey=${rootKeyId}`);
    await page.getByRole("button", { name: "Rotate" }).click();
    await page.getByLabel("Overlap").selectOption("7 days");
    await page.getByRole("button", { name: "Rotate" }).last().click();
    await page.getByText("The key is shown only once").waitFor();
    const [secret = ""] = await page.locator("figure pre").allTextContents();
    expect([await statusOf(dashboard, rootKey), await statusOf(dashboard, secret)]).toEqual([200, 200]);
    await page.getByRole("button", { name: "Close" }).last().click();
    await page.getByText("Replaced by").waitFor();
    const { successorId = "" } = await dashboard.call("admin.getRootKey", { rootKeyId });
    await page.getByRole("button", { name: successorId }).click();
    await page.getByText("Replaces").waitFor();
  });

  test("root key form rejects a change after a concurrent update", async ({ dashboard, open, faults }) => {
    faults.expect(/409/);
    const { rootKeyId } = await make(dashboard, "edited by two");
    const page = await open(`/root-keys?rootKey=${rootKeyId}`);
    await page.getByRole("button", { name: "Change" }).click();
    await dashboard.call("admin.updateRootKey", { rootKeyId, environment: "staging" });
    await page.getByLabel("Name", { exact: true }).fill("edited by me");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Someone else changed the object").waitFor();
    expect(await dashboard.call("admin.getRootKey", { rootKeyId })).toMatchObject({ name: "edited by two" });
  });

  test("root key page shows a hostile name as text", async ({ dashboard, open }) => {
    await make(dashboard, HOSTILE);
    await make(dashboard, "😀".repeat(255));
    const page = await open("/root-keys?search=onerror");
    await page.locator("bdi").filter({ hasText: "<img src=x" }).waitFor();
    expect(await page.locator('main img[src="x"]').count()).toBe(0);
    await page.goto(`${dashboard.url}/dashboard/root-keys?search=${encodeURIComponent("😀😀")}`);
    await page.locator("bdi").filter({ hasText: "😀😀😀" }).waitFor();
    await expectNoSideways(page);
  });
});

test.for(["viewer", "operator"] as const)(
  "root key page is read-only for a %s with a reason",
  async (role, { dashboard, open }) => {
    const { rootKeyId } = await make(dashboard, `seen by a ${role}`);
    const page = await open(`/root-keys?rootKey=${rootKeyId}`, { role });
    await page.getByText(rootKeyId).first().waitFor();
    for (const name of ["Change", "Rotate", "Disable", "Revoke"]) {
      const button = page.getByRole("button", { name, exact: true });
      expect(await button.getAttribute("aria-disabled")).toBe("true");
      expect(await button.getAttribute("title")).toContain("An admin of the workspace");
    }
  },
);

test("root key list of 2,000 root keys is loaded page by page", async ({ dashboard, open }) => {
  const [{ rootKeyId } = { rootKeyId: "" }] = await dashboard.call("admin.listRootKeys", { limit: 1 });
  await inDatabase(
    dashboard,
    `insert into root_keys (id, workspace_id, hash, start, name, permissions, created_at)
     select 'rk_many' || n, r.workspace_id, 'hash ' || n, 'postern_' || n, 'many ' || n, array['api.*.read_api'], n
       from root_keys r, generate_series(1, 2000) as n where r.id = $1`,
    [rootKeyId],
  );
  const page = await open("/root-keys?search=many");
  await page.getByText("100 root keys loaded; there are more").waitFor();
  expect(await page.getByRole("row").count()).toBeLessThan(60);
  await page.getByRole("row").nth(1).focus();
  await page.keyboard.press("End");
  await page.getByText("200 root keys loaded; there are more").waitFor();
});

test.for([
  { name: "a lost connection", status: 0, says: "Check the connection" },
  { name: "a refusal", status: 403, says: "An admin of the workspace can assign you a role" },
  { name: "an expired session", status: 401, says: "ended" },
])("root key page shows advice for $name", async ({ status, says }, { open, context, faults }) => {
  faults.expect(/./);
  const page = await open("/root-keys");
  await context.route("**/v2/admin.createRootKey", (route) =>
    status === 0
      ? route.abort()
      : route.fulfill({
          status,
          json: { meta: { requestId: "req_test" }, error: { type: "/errors/forbidden", detail: "no." } },
        }),
  );
  await page.getByRole("button", { name: "Create a root key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("never made");
  await page.getByLabel("Which").click();
  await page.getByRole("option", { name: "All APIs" }).click();
  await page.getByRole("checkbox", { name: "create api" }).check();
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText(says).first().waitFor();
});
