import { describe, expect } from "vitest";
import { expectAccessible } from "./accessible.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

describe("the list of identities", () => {
  test("identity list shows an empty state", async ({ open }) => {
    const page = await open("/identities");
    await page.getByText("No identities yet.").waitFor();
    expect(await page.title()).toBe("Identities · Postern");
  });

  test("identity list loads pages on scroll and shows only loaded rows", async ({ dashboard, open }) => {
    for (let index = 0; index < 130; index++) {
      await dashboard.call("identities.createIdentity", { externalId: `customer-${String(index).padStart(3, "0")}` });
    }
    const page = await open("/identities");
    await page.getByText("100 identities loaded; there are more").waitFor();
    await page.getByRole("row").nth(1).focus();
    await page.keyboard.press("End");
    await page.getByText("130 identities", { exact: true }).waitFor();
    await page.keyboard.press("End");
    await page.locator('[aria-rowindex="131"]:focus').waitFor();
    expect(await page.getByRole("row").count()).toBeLessThan(60);
    await page.locator(".table-scroller").evaluate((element) => element.scrollTo(0, 0));
    await page.locator('[aria-rowindex="2"]').waitFor();
    // The row that Tab leads to is still there.
    expect(await page.locator('[aria-rowindex="131"]').getAttribute("tabindex")).toBe("0");
  });

  test("identity list filter is read from the URL", async ({ open }) => {
    const page = await open("/identities?search=customer-00");
    await page.getByText("customer-009").waitFor();
    await page.getByLabel("External id or id contains").fill("nobody");
    await page.getByText("No identity contains “nobody”.").waitFor();
    expect(new URL(page.url()).searchParams.get("search")).toBe("nobody");
  });

  test("identity list shows advice and the request id on an error", async ({ open, context, faults }) => {
    faults.expect(/403/);
    await context.route("**/v2/identities.listIdentities", (route) =>
      route.fulfill({
        status: 403,
        json: {
          meta: { requestId: "req_test" },
          error: { type: "/errors/forbidden", detail: "identity.*.read_identity is missing." },
        },
      }),
    );
    const page = await open("/identities");
    await page.getByText("identity.*.read_identity is missing.").waitFor();
    await page.getByText("An admin of the workspace can assign you a role").waitFor();
    await page.getByText("req_test").waitFor();
  });
});

describe("an identity", () => {
  test("dashboard creates, shows, updates and deletes an identity", async ({ dashboard, open }) => {
    const page = await open("/identities?search=acme");
    await page.getByRole("button", { name: "Create an identity" }).click();
    const dialog = page.getByRole("dialog", { name: "Create an identity" });
    await dialog.getByLabel("External id").fill("acme corp");
    await dialog.getByText("Only ASCII letters, digits, and _ . - are allowed.").waitFor();
    await dialog.getByLabel("External id").fill("acme");
    await dialog.getByLabel("Data").fill('{"plan": ');
    await dialog.getByText("This is not a JSON object.").waitFor();
    await dialog.getByLabel("Data").fill('{"plan": "pro"}');
    await dialog.getByRole("button", { name: "Add a limit" }).click();
    await dialog.getByLabel("Name").fill("requests");
    await dialog.getByLabel("Units").fill("10");
    await dialog.getByLabel("Window").fill("1h");
    await dialog.getByRole("button", { name: "Create", exact: true }).click();

    const details = page.getByRole("dialog", { name: "acme", exact: true });
    await details.getByText("0 of 10").waitFor();
    await details.getByText('"plan": "pro"').waitFor();
    const { apiId } = await dashboard.call("apis.createApi", { name: "orders of acme" });
    const { key } = await dashboard.call("keys.createKey", { apiId, externalId: "acme", name: "billing job" });
    for (let i = 0; i < 3; i++) await dashboard.call("keys.verifyKey", { key });
    await page.reload();
    await details.getByText("3 of 10").waitFor();
    await details.getByText("1 key", { exact: true }).waitFor();
    await details.getByText("billing job").waitFor();
    await details.getByText("Usage of 30 days").waitFor();

    await details.getByRole("button", { name: "Change" }).click();
    const edit = page.getByRole("dialog", { name: "Change acme" });
    await edit.getByLabel("Units").fill("20");
    await edit.getByRole("button", { name: "Save" }).click();
    await edit.waitFor({ state: "hidden" });
    await details.getByText("3 of 20").waitFor();
    expect(await dashboard.call("identities.getIdentity", { identity: "acme" })).toMatchObject({
      meta: { plan: "pro" },
      ratelimits: [{ name: "requests", limit: 20, duration: 3_600_000, autoApply: true }],
    });

    await details.getByRole("button", { name: "Delete" }).click();
    await page.getByText("It has 1 key and 1 shared limit.").waitFor();
    await page.getByLabel(/^Type/).fill("acme");
    await page.getByRole("button", { name: "Delete the identity" }).click();
    await details.waitFor({ state: "hidden" });
    await page.getByText("No identity contains “acme”.").waitFor();
  });

  test("identity page opens by URL and is read-only for a viewer", async ({ dashboard, open }) => {
    const { identityId } = await dashboard.call("identities.createIdentity", { externalId: "shown-to-viewers" });
    const page = await open(`/identities?identity=${identityId}`, { role: "viewer" });
    const details = page.getByRole("dialog", { name: "shown-to-viewers" });
    const titleOf = (name: string) => details.getByRole("button", { name }).getAttribute("title");
    expect(await titleOf("Change")).toContain("identity.*.update_identity");
    expect(await titleOf("Delete")).toContain("identity.*.delete_identity");
    await expectAccessible(page);
  });

  test("page of a deleted identity shows what to do", async ({ open, faults }) => {
    faults.expect(/404/);
    const page = await open("/identities?identity=id_gone");
    await page.getByText("The object may have been deleted: go back to the list.").waitFor();
  });

  test("identity form keeps its input while the connection is lost", async ({ open, context, faults }) => {
    faults.expect(/ERR_FAILED/);
    const page = await open("/identities");
    await page.getByRole("button", { name: "Create an identity" }).click();
    const dialog = page.getByRole("dialog", { name: "Create an identity" });
    await dialog.getByLabel("External id").fill("typed-once");
    await context.route("**/v2/identities.createIdentity", (route) => route.abort());
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    await dialog.getByText("Check the connection to the server").waitFor();
    await context.unroute("**/v2/identities.createIdentity");
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("dialog", { name: "typed-once" }).waitFor();
  });
});
