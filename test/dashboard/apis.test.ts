import { describe, expect } from "vitest";
import { expectPresentable } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

const HOSTILE = "<img src=x onerror=alert(1)> \"'& 支付 ‮";

describe("APIs", () => {
  test("dashboard creates, renames, searches and deletes APIs with typed confirmation", async ({ dashboard, open }) => {
    const page = await open("/apis");
    await page.getByRole("button", { name: "Create an API" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("ab");
    expect(await dialog.getByRole("button", { name: "Create" }).getAttribute("aria-disabled")).toBe("true");
    await dialog.getByLabel("Name").fill("payments of today");
    await page.keyboard.press("Enter");
    await page.getByText("API payments of today created.").waitFor();
    await page.getByRole("link", { name: "payments of today" }).waitFor();

    await page.getByRole("button", { name: "More of payments of today" }).click();
    await page.getByRole("menuitem", { name: "Rename" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill(HOSTILE);
    await page.getByRole("dialog").getByRole("button", { name: "Rename" }).click();
    await page.getByText("API renamed.").waitFor();
    await page.getByLabel("Name or id contains").fill("支付");
    await page.getByRole("link", { name: "支付" }).waitFor();
    expect(await page.locator("img").count()).toBe(0);
    await expect.poll(() => new URL(page.url()).searchParams.get("search")).toBe("支付");

    const [api] = await dashboard.call("admin.listApis", { search: "支付" });
    await page.getByRole("button", { name: /^More of.*支付/ }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    const confirm = page.getByRole("dialog");
    const button = confirm.getByRole("button", { name: "Delete the API" });
    await button.click({ force: true });
    expect(await dashboard.call("admin.listApis", { search: "支付" })).toHaveLength(1);
    await confirm.getByRole("textbox").fill(api?.name ?? "");
    await button.click();
    await page.getByText("No API has “支付” in its name or id.").waitFor();
    expect(await dashboard.call("admin.listApis", { search: "支付" })).toEqual([]);
  });

  test("dashboard lists an API created while the first response is pending", async ({ context, open }) => {
    const { promise: goOn, resolve: letPass } = Promise.withResolvers<void>();
    let isFirst = true;
    await context.route("**/v2/admin.listApis", async (route) => {
      if (!isFirst) return route.continue();
      isFirst = false;
      const answeredBefore = await route.fetch();
      await goOn;
      // The page may have given it up.
      await route.fulfill({ response: answeredBefore }).catch(() => undefined);
    });
    const page = await open("/apis");
    await page.getByRole("button", { name: "Create an API" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("made too early");
    await page.keyboard.press("Enter");
    await page.getByText("API made too early created.").waitFor();
    letPass();
    await page.getByRole("link", { name: "made too early" }).waitFor();
  });

  test("rejected deletion of a protected API links to the settings of the API", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "protected-api" });
    await inDatabase(dashboard, "update apis set delete_protection = true where id = $1", [apiId]);
    const page = await open("/apis?search=protected-api");
    await page.getByRole("button", { name: "More of protected-api" }).click();
    await page.getByRole("menuitem", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("link", { name: "settings of the API" }).click();
    await page.waitForURL(`**/apis/${apiId}*`);
    await page.getByRole("button", { name: "Change the settings" }).waitFor();
  });

  test("dashboard locks a managed API and names its manifest", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "managed-api" });
    await inDatabase(dashboard, "update apis set manager = 'main/Api/shop/managed' where id = $1", [apiId]);
    const page = await open("/apis?search=managed-api");
    await page.getByRole("button", { name: "More of managed-api" }).click();
    const rename = page.getByRole("menuitem", { name: "Rename" });
    expect(await rename.textContent()).toBe("RenameManaged by main/Api/shop/managed: change its manifest.");
    expect(await rename.getAttribute("aria-disabled")).toBe("true");
  });

  test("dashboard shows a viewer the APIs read-only, with the missing permission", async ({ open }) => {
    const page = await open("/apis", { role: "viewer" });
    const create = page.getByRole("button", { name: "Create an API" });
    expect(await create.getAttribute("title")).toContain("api.*.create_api");
    await create.click({ force: true });
    expect(await page.getByRole("dialog").count()).toBe(0);
  });

  test("list with a managed API is accessible and fits every window size", async ({ open }) => {
    const page = await open("/apis");
    await page.getByRole("link", { name: "managed-api" }).waitFor();
    await expectPresentable(page);
  });
});
