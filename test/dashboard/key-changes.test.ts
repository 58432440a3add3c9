import type { Locator, Page } from "playwright-core";
import { describe, expect } from "vitest";
import { inDatabase } from "./database.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

async function anApi({ call }: Dashboard, name: string): Promise<string> {
  return (await call("apis.createApi", { name })).apiId;
}

/** Opens the page of a new key. */
async function aKey(
  { call }: Dashboard,
  open: (path: string) => Promise<Page>,
  body: object = {},
): Promise<{ page: Page; keyId: string; key: string }> {
  const { apiId } = await call("apis.createApi", { name: "changed keys" });
  const { keyId, key } = await call("keys.createKey", { apiId, name: "Before", ...body });
  const page = await open(`/keys/${keyId}`);
  await page.getByRole("button", { name: "Change", exact: true }).waitFor();
  return { page, keyId, key };
}

const menu = async (page: Page, item: string): Promise<void> => {
  await page.getByRole("button", { name: "More", exact: true }).click();
  await page.getByRole("menuitem", { name: item }).click();
};

/** As if the person had copied the text elsewhere. */
const pasteInto = async (field: Locator, text: string): Promise<void> => {
  await field.focus();
  await field.evaluate((element, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text", pasted);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
};

const chipsOf = (field: Locator): Promise<string[]> =>
  field.locator("xpath=..").locator(".chip-text").allTextContents();

describe("a key", () => {
  test("dashboard creates a key from the key list after choosing an API", async ({ dashboard, open }) => {
    // Of two with one beginning, the one that is chosen.
    await anApi(dashboard, "chosen in the window too");
    const apiId = await anApi(dashboard, "chosen in the window");
    const page = await open("/keys");
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog");
    const create = dialog.getByRole("button", { name: "Create" });
    await dialog.getByLabel("Name", { exact: true }).fill("Of a chosen API");
    expect(await create.getAttribute("aria-disabled")).toBe("true");
    expect(await create.getAttribute("title")).toBe("Choose an API.");
    await dialog.getByRole("combobox", { name: "API" }).fill("chosen in the window");
    await page.getByRole("option", { name: apiId }).click();
    await create.click();
    await page.getByText("The key is shown only once").waitFor();
    const [found, ...others] = await dashboard.call("admin.searchKeys", { name: "Of a chosen API" });
    expect([found?.apiId, others]).toEqual([apiId, []]);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("row").getByText("Of a chosen API").waitFor();
    await page
      .locator(".table-foot")
      .getByText(/^\d+ keys?/)
      .waitFor();
  });

  test("dashboard creates a key with all fields and shows it once", async ({ dashboard, open }) => {
    const apiId = await anApi(dashboard, "made here");
    await dashboard.call("permissions.createRole", { name: "made-role" });
    const page = await open(`/keys?api=${apiId}`, { role: "operator" });
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("New key");
    await dialog.getByLabel("Owner").fill("made.owner");
    await dialog.getByLabel("Expires (UTC)").fill("2035-05-06T07:08");
    await dialog.getByLabel("Credits", { exact: true }).fill("1,000");
    await dialog.getByLabel("Refill").selectOption("daily");
    await dialog.getByLabel("Credits per refill").fill("10");
    await dialog.getByRole("button", { name: "Add a limit" }).click();
    await dialog.getByText("More options").click();
    await dialog.getByLabel("Meta").fill("{");
    await dialog.getByText("A JSON object, such as").waitFor();
    expect(await dialog.getByRole("button", { name: "Create" }).getAttribute("aria-disabled")).toBe("true");
    await dialog.getByLabel("Meta").fill('{"plan":"pro"}');
    await dialog.getByLabel("Roles").fill("made-role");
    await pasteInto(dialog.getByLabel("Direct permissions"), "made.read,\n made.write\nMADE.READ");
    await dialog.getByLabel("Prefix").fill("made");
    await dialog
      .getByText(
        "A key named “New key” for made here, owned by made.owner, with the role made-role and the permissions made.read and made.write, 100 requests per minute, 1,000 credits and 10 more each day, expires on May 6, 2035, starting with made_…. Also creates the identity made.owner and the permissions made.read and made.write.",
      )
      .waitFor();
    await dialog.getByRole("button", { name: "Create" }).click();
    const secret =
      (await page
        .getByRole("dialog")
        .getByText(/^made_\w{20,}$/)
        .textContent()) ?? "";
    await page.getByText("keys.verifyKey").waitFor();
    expect((await dashboard.call("keys.verifyKey", { key: secret })).code).toBe("VALID");
    // No slip of a finger closes it.
    await page.keyboard.press("Escape");
    expect(await page.getByText(secret, { exact: true }).count()).toBe(1);
    await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
    await page.getByRole("row").getByText("New key").waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, history.state, location.href]),
    );
    expect(`${kept}${await page.content()}`).not.toContain(secret);

    const [found] = await dashboard.call("admin.searchKeys", { apiId });
    expect(await dashboard.call("keys.getKey", { keyId: found?.keyId ?? "" })).toMatchObject({
      name: "New key",
      identity: { externalId: "made.owner" },
      expires: Date.UTC(2035, 4, 6, 7, 8),
      credits: { remaining: 999, refill: { interval: "daily", amount: 10 } },
      ratelimits: [{ name: "requests", limit: 100, duration: 60_000, autoApply: true }],
      meta: { plan: "pro" },
      roles: ["made-role"],
      permissions: ["made.read", "made.write"],
    });
  });

  test("picker adds exactly what is typed, removes chips by keyboard, and keeps text when Escape closes its list", async ({
    dashboard,
    open,
  }) => {
    const { call } = dashboard;
    const apiId = await anApi(dashboard, "picked here");
    for (const slug of ["picked.read", "picked.write"])
      await call("permissions.createPermission", { name: slug, slug });
    for (const name of ["picked, both", "picked-editor"]) await call("permissions.createRole", { name });
    const page = await open(`/keys?api=${apiId}`);
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog", { name: "Create a key" });
    const [roles, permissions] = [dialog.getByLabel("Roles"), dialog.getByLabel("Direct permissions")];
    // Enter adds what was typed, whatever the search finds, and neither sends the form nor adds more.
    await permissions.pressSequentially("picked");
    await page.getByRole("option", { name: "picked.write" }).waitFor();
    await page.getByRole("option", { name: "Create permission picked" }).waitFor();
    for (const key of ["Enter", "Enter", "Enter"]) await page.keyboard.press(key);
    await permissions.pressSequentially("PICKED.read,picked.read,");
    await permissions.pressSequentially("pic");
    await page.getByRole("option", { name: "picked.write" }).click();
    await page.keyboard.press("Enter");
    expect(await chipsOf(permissions)).toEqual(["picked", "picked.read", "picked.write"]);
    await page.keyboard.press("Tab");
    expect(await chipsOf(permissions)).toHaveLength(3);
    await dialog.getByText("Also creates the permission picked.").waitFor();

    // Backspace removes the last chip, and the arrow key leads to the others.
    await permissions.press("Backspace");
    await permissions.press("ArrowLeft");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Delete");
    expect(await chipsOf(permissions)).toEqual(["picked.read"]);

    // A role may have a comma in its name. The first match is chosen.
    await roles.pressSequentially("picked,");
    await page.getByRole("option", { name: "picked, both" }).waitFor();
    await page.keyboard.press("Enter");
    await roles.pressSequentially("no such role");
    await page.getByText("No role matches.").waitFor();
    await page.keyboard.press("Escape");
    expect(await roles.inputValue()).toBe("no such role");
    // Leaving the field takes the text, of which the form says what is wrong.
    await dialog.getByLabel("Name", { exact: true }).focus();
    expect(await chipsOf(roles)).toEqual(["picked, both", "no such role"]);
    await dialog.getByText("Remove the role no such role: only existing roles can be added.").waitFor();
    await dialog.getByRole("button", { name: "Create" }).press("Enter");
    await roles.and(page.locator(":focus")).waitFor();
    expect(await roles.getAttribute("aria-invalid")).toBe("true");
    await page.keyboard.press("Escape");
    const question = page.getByRole("dialog", { name: "Discard your input?" });
    await question.getByRole("button", { name: "Stay" }).click();
    await dialog.getByRole("button", { name: "Remove no such role" }).click();
    await dialog.getByLabel("Owner").fill("Picked");
    await page.keyboard.press("Tab");
    await dialog.getByRole("button", { name: "30 days" }).click();
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByText("The key is shown only once").waitFor();
    const [found] = await call("admin.searchKeys", { apiId });
    expect(await call("keys.getKey", { keyId: found?.keyId ?? "" })).toMatchObject({
      identity: { externalId: "Picked" },
      roles: ["picked, both"],
      permissions: ["picked.read"],
    });
    expect(Math.round(((found?.expires ?? 0) - Date.now()) / 86_400_000)).toBe(30);
  });

  test("picker reports a failed search, asks before it discards a chosen option, and accepts complete names", async ({
    dashboard,
    open,
    context,
    faults,
  }) => {
    faults.expect(/\b503\b/);
    const apiId = await anApi(dashboard, "while away");
    await dashboard.call("identities.createIdentity", { externalId: "known-owner" });
    const page = await open(`/keys?api=${apiId}`);
    await page.getByRole("button", { name: "Create a key" }).click();
    const dialog = page.getByRole("dialog", { name: "Create a key" });
    // Chosen by the mouse alone.
    await dialog.getByLabel("Owner").click();
    await page.getByRole("option", { name: "known-owner" }).click();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Discard your input?" }).getByRole("button", { name: "Stay" }).click();
    await context.route("**/v2/admin.listRoles", (route) =>
      route.fulfill({ status: 503, json: { meta: { requestId: "req_away" }, error: { detail: "Postgres is away." } } }),
    );
    await dialog.getByLabel("Roles").fill("typed-blindly");
    await dialog.getByText("Searching the roles failed. Postgres is away. You can type complete names.").waitFor();
    await dialog.getByLabel("Name", { exact: true }).focus();
    expect(await chipsOf(dialog.getByLabel("Roles"))).toEqual(["typed-blindly"]);
    faults.expect(/\b404\b/);
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("Creating the key failed.").waitFor();
    expect(await chipsOf(dialog.getByLabel("Roles"))).toEqual(["typed-blindly"]);
    expect(await dashboard.call("admin.searchKeys", { apiId })).toEqual([]);
  });

  test("key form keeps concurrent changes of other fields", async ({ dashboard, open }) => {
    const { page, keyId } = await aKey(dashboard, open, { credits: { remaining: 50 }, meta: { a: 1 } });
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await dashboard.call("keys.updateKey", { keyId, meta: { b: 2 } });
    await dashboard.call("keys.updateCredits", { keyId, operation: "decrement", value: 5 });
    await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("After");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "After" }).waitFor();
    expect(await dashboard.call("keys.getKey", { keyId })).toMatchObject({
      name: "After",
      meta: { b: 2 },
      credits: { remaining: 45 },
    });
  });

  test("dashboard adds and removes roles and permissions of a key", async ({ dashboard, open }) => {
    await dashboard.call("permissions.createRole", { name: "given-role" });
    const { page, keyId } = await aKey(dashboard, open, { permissions: ["old.read", "kept.read"] });
    await menu(page, "Roles and permissions");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Roles").fill("given-role");
    await dialog.getByLabel("Direct permissions").fill("new.read");
    await page.keyboard.press("Tab");
    await dialog.getByRole("button", { name: "Remove old.read" }).click();
    await dialog
      .getByText(
        "Adds the role given-role and the permission new.read. Removes the permission old.read. Creates the permission new.read.",
      )
      .waitFor();
    // Another person gives it a permission meanwhile.
    await dashboard.call("keys.addPermissions", { keyId, permissions: ["theirs.read"] });
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByText("Roles and permissions changed.").waitFor();
    await page.getByRole("rowheader", { name: "theirs.read" }).waitFor();
    expect(await dashboard.call("keys.getKey", { keyId })).toMatchObject({
      roles: ["given-role"],
      permissions: ["kept.read", "new.read", "theirs.read"],
    });
  });

  test("dashboard sets, decreases and removes the credits of a key", async ({ dashboard, open }) => {
    const { page, keyId } = await aKey(dashboard, open, { credits: { remaining: 10 } });
    const change = async (what: string, value: string | undefined, says: string) => {
      await menu(page, "Credits");
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Action").selectOption({ label: what });
      if (value !== undefined) await dialog.getByLabel("Credits").fill(value);
      await dialog.getByRole("button", { name: "Save" }).click();
      await page.getByText(says).waitFor();
    };
    await change("Add", "5", "The key has 15 credits.");
    await change("Subtract", "3", "The key has 12 credits.");
    await change("Set to", "1000", "The key has 1,000 credits.");
    await change("Make unlimited, without a refill", undefined, "The key has unlimited credits.");
    expect((await dashboard.call("keys.getKey", { keyId })).credits).toBeUndefined();
  });

  test("dashboard rerolls a key with an overlap and shows the new key once", async ({ dashboard, open }) => {
    const { page, key } = await aKey(dashboard, open);
    await menu(page, "Reroll");
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Overlap").fill("2h");
    await dialog.getByRole("button", { name: "Reroll" }).click();
    const secret = (await page.locator(".code pre").first().textContent()) ?? "";
    for (const one of [key, secret]) expect((await dashboard.call("keys.verifyKey", { key: one })).code).toBe("VALID");
    await page.getByRole("dialog").getByRole("link", { name: /^key_/ }).click();
    await page.getByRole("heading", { name: "Before" }).waitFor();
    expect(await page.content()).not.toContain(secret);
  });

  test("dashboard disables, enables and deletes a key with typed confirmation", async ({ dashboard, open, faults }) => {
    faults.expect(/404/);
    const { page, keyId, key } = await aKey(dashboard, open);
    await page.getByRole("button", { name: "Disable", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Disable the key" }).click();
    await page.getByText("A request now would be rejected: disabled").waitFor();
    expect((await dashboard.call("keys.verifyKey", { key })).code).toBe("DISABLED");
    await page.getByRole("button", { name: "Enable", exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Enable the key" }).click();
    await page.getByText("A request now would be admitted").waitFor();
    await menu(page, "Delete");
    const dialog = page.getByRole("dialog");
    expect(await dialog.getByRole("button", { name: "Delete the key" }).getAttribute("aria-disabled")).toBe("true");
    await dialog.getByRole("textbox").fill("Before");
    await dialog.getByLabel("Delete the key permanently, with all of its data").check();
    await dialog.getByRole("button", { name: "Delete the key" }).click();
    await page.getByText("Key deleted.").waitFor();
    expect(await inDatabase(dashboard, "select id from keys where id = $1", [keyId])).toEqual([]);
    await page.goBack();
    await page.getByText("The object may have been deleted").waitFor();
    expect(await page.getByText("A request now would be admitted").count()).toBe(0);
  });

  test("key form names the manifest if a change is rejected because the key became managed", async ({
    dashboard,
    open,
    faults,
  }) => {
    faults.expect(/409/);
    const { page, keyId } = await aKey(dashboard, open);
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await inDatabase(dashboard, "update keys set manager = 'main/ApiKey/shop/taken' where id = $1", [keyId]);
    await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("Too late");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByText(/is managed by main\/ApiKey\/shop\/taken/).waitFor();
    await page.getByText("Change its manifest instead: the operator would undo a change made here.").waitFor();
    expect(await page.getByRole("dialog").getByLabel("Name", { exact: true }).inputValue()).toBe("Too late");
  });
});

describe("in a time zone of its own", () => {
  test.override("timeZone", "America/St_Johns");

  test("expiry of a key is typed and shown in the time zone of the browser", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "far from UTC" });
    // 23:30 in St. John's, where it is still the day before.
    const expires = Date.UTC(2035, 4, 7, 2, 0);
    const { keyId } = await dashboard.call("keys.createKey", { apiId, name: "Typed there", expires });
    const page = await open(`/keys?api=${apiId}`);
    const listed = page.getByRole("row").nth(1).locator("time").first();
    expect([await listed.textContent(), await listed.getAttribute("title")]).toEqual([
      "May 6, 2035",
      "2035-05-07 02:00:00 UTC",
    ]);
    await page.goto(`${dashboard.url}/dashboard/keys/${keyId}`);
    await page.getByText("May 6, 2035, 23:30:00 GMT-2:30").waitFor();
    await page.getByRole("button", { name: "Change" }).click();
    const field = page.getByRole("dialog").getByLabel("Expires (America/St_Johns)");
    expect(await field.inputValue()).toBe("2035-05-06T23:30");
    // Summer time begins on March 11 at 2:00, so there is no 2:30.
    await field.fill("2035-03-11T02:30");
    await page.getByText("America/St_Johns skips this time").waitFor();
    await page.keyboard.press("Enter");
    expect((await dashboard.call("keys.getKey", { keyId })).expires).toBe(expires);
    await field.fill("2035-03-11T03:30");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByText("Mar 11, 2035, 03:30:00 GMT-2:30").waitFor();
    expect((await dashboard.call("keys.getKey", { keyId })).expires).toBe(Date.UTC(2035, 2, 11, 6, 0));
  });
});
