import { describe, expect } from "vitest";
import { expectAccessible } from "./accessible.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

describe("the audit log", () => {
  test("dashboard audit log lists changes newest first with their actor", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "audited" });
    await dashboard.call("apis.updateApi", { apiId, name: "renamed" });
    const page = await open(`/audit?targetId=${apiId}`);
    await page.getByRole("row").nth(2).waitFor();
    expect(await page.getByRole("row").nth(1).textContent()).toContain("api.update");
    expect(await page.getByRole("row").nth(2).textContent()).toContain("api.create");
  });

  test("dashboard audit log opens the difference of a change by keyboard and shows its row in the URL", async ({
    dashboard,
    open,
  }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "first name" });
    await dashboard.call("apis.updateApi", { apiId, name: "second name" });
    const page = await open(`/audit?targetId=${apiId}`);
    await page.getByRole("row").nth(1).focus();
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.locator("del", { hasText: "first name" }).waitFor();
    await dialog.locator("ins", { hasText: "second name" }).waitFor();
    expect(new URL(page.url()).searchParams.get("row")).toMatch(/^log_/);
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  test("dashboard audit log filters by event and actor and shows an empty result", async ({ dashboard, open }) => {
    await dashboard.call("permissions.createPermission", { name: "Filtered", slug: "filtered.read" });
    const page = await open("/audit");
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByLabel("Event").selectOption("permission.create");
    await page
      .getByText("filtered.read")
      .or(page.getByText(/Created permission/))
      .first()
      .waitFor();
    expect(new URL(page.url()).searchParams.get("event")).toBe("permission.create");
    await page.getByLabel("Actor id").fill("rk_nobody");
    await page.getByText("No entries match these filters.").waitFor();
    // A chip removes its filter, and the action of the empty list all of them.
    await page.getByRole("dialog").getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Remove the filter Event: permission.create" }).click();
    await expect.poll(() => new URL(page.url()).searchParams.has("event")).toBe(false);
    expect(new URL(page.url()).searchParams.get("actorId")).toBe("rk_nobody");
    await page.getByRole("button", { name: "Remove the filters" }).click();
    await page.getByRole("row").nth(1).waitFor();
    expect(await page.locator(".chip").count()).toBe(0);
  });

  test("dashboard audit log shows hostile text as text", async ({ dashboard, open }) => {
    const name = `<img src=x onerror="document.title='stolen'">`;
    const { apiId } = await dashboard.call("apis.createApi", { name });
    await dashboard.call("apis.updateApi", { apiId, name: `<script>document.title='stolen'</script>` });
    const page = await open(`/audit?targetId=${apiId}`);
    await page.getByRole("row").nth(1).click();
    await page.getByRole("dialog").getByText(name).first().waitFor();
    expect(await page.title()).toBe("Audit log · Postern");
  });

  test.for(["viewer", "operator"] as const)("dashboard audit log is readable for a %s", async (role, { open }) => {
    const page = await open("/audit", { role });
    await page.getByRole("row").nth(1).waitFor();
  });
});
