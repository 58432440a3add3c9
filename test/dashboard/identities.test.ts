import { describe, expect } from "vitest";
import { expectAccessible, expectPresentable } from "./accessible.ts";
import { dashboardTest } from "./harness.ts";
import { expectReachable } from "./keyboard.ts";

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
    await dialog.getByLabel("Meta").fill('{"plan": ');
    await dialog.getByText("This is not a JSON object.").waitFor();
    await dialog.getByLabel("Meta").fill('{"plan": "pro"}');
    await dialog.getByRole("button", { name: "100 per minute" }).click();
    await dialog.getByLabel("Requests").fill("10");
    await dialog.getByLabel("Window").fill("1h");
    await dialog.getByText("10 requests per hour").waitFor();
    // Of two limits with one name, the server would apply the last alone.
    await dialog.getByRole("button", { name: "Add a limit" }).click();
    await dialog.getByLabel("Limit name").last().fill("requests");
    await dialog.getByText("Another limit has this name.").first().waitFor();
    await dialog.getByRole("button", { name: "Remove the limit requests" }).last().click();
    await dialog.getByRole("button", { name: "Create", exact: true }).click();

    await page.getByRole("heading", { name: "acme", exact: true }).waitFor();
    const { id = "" } = await dashboard.call("identities.getIdentity", { identity: "acme" });
    expect(new URL(page.url()).pathname).toBe(`/dashboard/identities/${id}`);
    expect(await page.title()).toBe("acme · Postern");
    await page.getByText("0 of 10").waitFor();
    await page.getByText('"plan": "pro"').waitFor();
    await page.getByText("This owner has no keys yet.").waitFor();
    await page.getByRole("link", { name: "Create the first key" }).click();
    await page.getByRole("dialog").getByText("owned by acme").waitFor();
    await page.goBack();
    const { apiId } = await dashboard.call("apis.createApi", { name: "orders of acme" });
    const { key, keyId } = await dashboard.call("keys.createKey", { apiId, externalId: "acme", name: "billing job" });
    for (let i = 0; i < 3; i++) await dashboard.call("keys.verifyKey", { key });
    await page.reload();
    await page.getByText("3 of 10").waitFor();
    await page.getByText("1 key", { exact: true }).waitFor();
    await page.getByRole("row", { name: "billing job" }).getByRole("link").click();
    await page.waitForURL(`**/keys/${keyId}*`);
    await page.goBack();
    for (const [link, parameter, value] of [
      ["Keys", "q", "acme"],
      ["Usage", "owner", "acme"],
      ["Requests", "owner", "acme"],
      ["Audit log", "targetId", id],
    ] as const) {
      await page.getByRole("main").getByRole("link", { name: link, exact: true }).click();
      await page.getByRole("heading", { name: link, exact: true }).waitFor();
      expect(new URL(page.url()).searchParams.get(parameter), link).toBe(value);
      await page.goBack();
    }

    await page.getByRole("button", { name: "Change" }).click();
    const edit = page.getByRole("dialog", { name: "Change acme" });
    await edit.getByLabel("Requests").fill("20");
    await edit.getByRole("button", { name: "Save" }).click();
    await edit.waitFor({ state: "hidden" });
    await page.getByText("3 of 20").waitFor();
    expect(await dashboard.call("identities.getIdentity", { identity: "acme" })).toMatchObject({
      meta: { plan: "pro" },
      ratelimits: [{ name: "requests", limit: 20, duration: 3_600_000, autoApply: true }],
    });

    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("It has 1 key and 1 shared limit.").waitFor();
    await page.getByLabel(/^Type/).fill("acme");
    await page.getByRole("button", { name: "Delete the identity" }).click();
    await page.waitForURL((url) => url.pathname === "/dashboard/identities");
    await page.getByText("Identity acme deleted.").waitFor();
  });

  test("identity page opens by URL and is read-only for a viewer", async ({ dashboard, open }) => {
    const { identityId } = await dashboard.call("identities.createIdentity", { externalId: "shown-to-viewers" });
    const page = await open(`/identities/${identityId}`, { role: "viewer" });
    await page.getByRole("heading", { name: "shown-to-viewers" }).waitFor();
    const titleOf = (name: string) => page.getByRole("button", { name }).getAttribute("title");
    expect(await titleOf("Change")).toContain("identity.*.update_identity");
    expect(await titleOf("Delete")).toContain("identity.*.delete_identity");
    await expectAccessible(page);
    await expectReachable(page);
    await expectPresentable(page);
  });

  test("page of a deleted identity shows what to do", async ({ open, faults }) => {
    faults.expect(/404/);
    const page = await open("/identities/id_gone");
    await page.getByText("The object may have been deleted: go back to the list.").waitFor();
    await page.getByRole("link", { name: "All identities" }).click();
    await page.getByRole("table", { name: "Identities" }).waitFor();
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
    await page.getByRole("heading", { name: "typed-once" }).waitFor();
  });
});
