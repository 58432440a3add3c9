import type { Locator } from "playwright-core";
import { expect } from "vitest";
import { expectAccessible } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { dashboardTest } from "./harness.ts";

/* What every window with a form has from its one frame, tried on one of them. */

const test = dashboardTest();

test("form dialog submits on Enter only when complete, and only once", async ({ context, open }) => {
  const names: unknown[] = [];
  const { promise: goOn, resolve: response } = Promise.withResolvers<void>();
  await context.route("**/v2/apis.createApi", async (route) => {
    names.push((route.request().postDataJSON() as { name: unknown }).name);
    await goOn;
    await route.continue();
  });
  const page = await open("/apis");
  await page.getByRole("button", { name: "Create an API" }).click();
  const dialog = page.getByRole("dialog", { name: "Create an API" });
  const name = dialog.getByLabel("Name");
  await name.fill("ab");
  await name.press("Enter");
  // A form can also be sent without its button.
  await dialog.locator("form").evaluate((form: HTMLFormElement) => form.requestSubmit());
  await name.fill("sent once");
  await name.press("Enter");
  await dialog.getByRole("button", { name: "Create" }).and(page.locator("[aria-busy=true]")).waitFor();
  await name.press("Enter");
  await dialog.locator("form").evaluate((form: HTMLFormElement) => form.requestSubmit());
  response();
  await page.getByText("API sent once created.").waitFor();
  await dialog.waitFor({ state: "hidden" });
  expect(names).toEqual(["sent once"]);
});

test("reopened form dialog discards rejected input", async ({ context, open, faults }) => {
  faults.expect(/\b409\b/);
  await context.route("**/v2/ratelimit.createNamespace", (route) =>
    route.fulfill({
      status: 409,
      json: { meta: { requestId: "req_refused" }, error: { type: "/errors/namespace_exists", detail: "It exists." } },
    }),
  );
  const page = await open("/ratelimits");
  const begin = page.getByRole("button", { name: "Create a namespace" });
  await begin.click();
  const dialog = page.getByRole("dialog", { name: "Create a namespace" });
  await dialog.getByLabel("Name").fill("taken");
  await dialog.getByRole("button", { name: "Create" }).click();
  await dialog.getByText("req_refused").waitFor();
  expect(await dialog.getByLabel("Name").inputValue()).toBe("taken");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await dialog.waitFor({ state: "hidden" });
  await begin.and(page.locator(":focus")).waitFor();
  await begin.click();
  expect(await dialog.getByLabel("Name").inputValue()).toBe("");
  expect(await dialog.getByRole("alert").count()).toBe(0);
});

test("form dialog reports that the object became managed while the dialog was open", async ({
  dashboard,
  open,
  faults,
}) => {
  faults.expect(/\b409\b/);
  const { apiId } = await dashboard.call("apis.createApi", { name: "taken-over" });
  const page = await open("/apis?search=taken-over");
  await page.getByRole("button", { name: "More of taken-over" }).click();
  await page.getByRole("menuitem", { name: "Rename" }).click();
  await inDatabase(dashboard, "update apis set manager = 'main/Role/shop/taken' where id = $1", [apiId]);
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("another-name");
  await dialog.getByRole("button", { name: "Rename" }).click();
  await dialog.getByText("A manifest manages this object.").waitFor();
  await dialog.getByText("shop", { exact: true }).waitFor();
  expect(await dialog.getByLabel("Name").inputValue()).toBe("another-name");
});

test("dialog asks before Escape, a click outside, Back or a link discards input", async ({ dashboard, open }) => {
  const page = await open("/identities");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "APIs" }).click();
  const begin = page.getByRole("button", { name: "Create an API" });
  await begin.click();
  const dialog = page.getByRole("dialog", { name: "Create an API" });
  // Nothing is typed yet, so nothing is asked.
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "hidden" });
  await begin.click();
  await dialog.getByLabel("Name").fill("half typed");
  const question = page.getByRole("dialog", { name: "Discard your input?" });
  const leaving = [
    () => page.keyboard.press("Escape"),
    () => page.mouse.click(5, 5),
    () => page.goBack().then(() => undefined),
  ];
  for (const leave of leaving) {
    await leave();
    await question.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "hidden" });
    expect(await dialog.getByLabel("Name").inputValue()).toBe("half typed");
    expect(new URL(page.url()).pathname).toBe("/dashboard/apis");
  }
  await page.goBack();
  await question.getByRole("button", { name: "Discard" }).click();
  await page.waitForURL((url) => url.pathname === "/dashboard/identities");
  expect(await dashboard.call("admin.listApis", { search: "half typed" })).toEqual([]);
});

test("browser asks before a reload discards input or a key that is shown once", async ({ open }) => {
  const page = await open("/identities");
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Root keys" }).click();
  const asked: string[] = [];
  page.on("dialog", async (shown) => {
    asked.push(shown.type());
    await shown.dismiss();
  });
  const reload = () => page.evaluate(() => location.reload());
  await page.getByRole("button", { name: "Create a root key" }).click();
  await page.getByLabel("Name", { exact: true }).fill("reloaded");
  await reload();
  await expect.poll(() => asked).toEqual(["beforeunload"]);
  await page.getByLabel("Which").click();
  await page.getByRole("option", { name: "All APIs" }).click();
  await page.getByRole("checkbox", { name: "create api" }).check();
  await page.getByRole("button", { name: "Create", exact: true }).click();
  const secret = page.locator("figure pre").first();
  const text = await secret.textContent();
  await reload();
  await expect.poll(() => asked).toEqual(["beforeunload", "beforeunload"]);
  await page.keyboard.press("Escape");
  await page.evaluate(() => history.back());
  const question = page.getByRole("dialog", { name: "Leave without the secret?" });
  await question.getByRole("button", { name: "Stay" }).click();
  expect(await secret.textContent()).toBe(text);
  await page.getByRole("button", { name: "Close" }).click();
  await secret.waitFor({ state: "hidden" });
});

/** Whether the element is inside the viewport with nothing above it. */
const isInSight = (element: Locator): Promise<boolean> =>
  element.evaluate((one) => {
    const { left, top, right, bottom } = one.getBoundingClientRect();
    const isInside = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    const topmost = document.elementFromPoint((left + right) / 2, Math.min(top + 8, (top + bottom) / 2));
    return isInside && one.contains(topmost);
  });

const LAPTOP = { width: 1440, height: 900 };

test("form shows a server error in its own terms at the field, which it scrolls into view and focuses", async ({
  dashboard,
  open,
  faults,
}) => {
  faults.expect(/\b400\b/);
  const { apiId } = await dashboard.call("apis.createApi", { name: "with problems" });
  const page = await open(`/keys?api=${apiId}`, LAPTOP);
  await page.getByRole("button", { name: "Create a key" }).click();
  const dialog = page.getByRole("dialog");
  const owner = dialog.getByLabel("Owner", { exact: true });
  await owner.fill("no owner!");
  await page.keyboard.press("Tab");
  // The end of the form, from where the field is out of sight.
  for (let i = 0; i < 4; i++) await dialog.getByRole("button", { name: "Add a limit" }).click();
  await dialog.getByText("More options").click();
  await dialog.getByLabel("Recoverable").focus();
  await dialog.getByRole("button", { name: "Create", exact: true }).click();
  await owner.and(page.locator(":focus")).waitFor();
  expect(await isInSight(owner)).toBe(true);
  const description = page.locator(`[id="${(await owner.getAttribute("aria-describedby"))?.split(" ").at(-1)}"]`);
  expect(await description.textContent()).toBe("Use only letters, digits, _, ., -.");
  expect(await dialog.getByText("externalId").count()).toBe(0);
  await expectAccessible(page);
  await owner.fill("an-owner");
  expect(await owner.getAttribute("aria-invalid")).toBeNull();
});

test("form scrolls to an error that belongs to no field, and focuses it", async ({
  dashboard,
  open,
  context,
  faults,
}) => {
  faults.expect(/\b503\b/);
  const { apiId } = await dashboard.call("apis.createApi", { name: "while away" });
  const page = await open(`/keys?api=${apiId}`, LAPTOP);
  await context.route("**/v2/keys.createKey", (route) =>
    route.fulfill({ status: 503, json: { meta: { requestId: "req_away" }, error: { detail: "Postgres is away." } } }),
  );
  await page.getByRole("button", { name: "Create a key" }).click();
  const dialog = page.getByRole("dialog");
  for (let i = 0; i < 4; i++) await dialog.getByRole("button", { name: "Add a limit" }).click();
  await dialog.getByLabel("Name", { exact: true }).first().fill("in vain");
  await page.keyboard.press("Enter");
  const summary = dialog.locator(".form-summary").and(page.locator(":focus"));
  await summary.getByText("Postgres is away.").waitFor();
  expect(await isInSight(summary.getByText("Postgres is away."))).toBe(true);
});

test("disabled button, when pressed, says what is missing and, in a form, focuses the field", async ({ open }) => {
  const page = await open("/root-keys", LAPTOP);
  await page.getByRole("button", { name: "Create a root key" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Create", exact: true }).press("Enter");
  await dialog.getByRole("alert").getByText("Enter a name of at least 3 characters.").waitFor();
  expect(await isInSight(dialog.getByText("Enter a name of at least 3 characters."))).toBe(true);
  await dialog.getByLabel("Name", { exact: true }).and(page.locator(":focus")).waitFor();
  await dialog.getByRole("button", { name: "Verify keys of one API" }).press("Enter");
  await page.locator(".toast").getByText("Choose the resource APIs and one of its APIs first.").waitFor();
});
