import { randomBytes } from "node:crypto";
import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { waitFor } from "../harness/wait.ts";
import { expectPresentable } from "./accessible.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

let made = 0;

/** A role and two permissions of this test alone, and the address that shows them. */
async function aRole({ call }: Dashboard, granted: readonly string[] = ["read"]) {
  made += 1;
  const name = `team-${made}`;
  const slug = (action: string) => `things${made}.${action}`;
  for (const action of ["read", "write"]) {
    await call("permissions.createPermission", { slug: slug(action), name: slug(action) });
  }
  const { roleId } = await call("permissions.createRole", { name, permissions: granted.map(slug) });
  const slugs = async () =>
    ((await call("permissions.getRole", { role: roleId })).permissions ?? []).map((one) => one.slug);
  return { roleId, name, slug, slugs, path: `/permissions?search=things${made}.&roles=team-${made}` };
}

const cellOf = (page: Page, slug: string, role: string) => page.getByRole("gridcell", { name: `${slug}, ${role}:` });

describe("the matrix", () => {
  test("permission matrix changes cells, reviews the difference and saves", async ({ dashboard, open }) => {
    const { name, slug, slugs, path } = await aRole(dashboard);
    const page = await open(path);
    await cellOf(page, slug("write"), name).click();
    await cellOf(page, slug("read"), name).click();
    await page.getByRole("button", { name: "Review 2 changes" }).click();
    const review = page.getByRole("dialog");
    await review.getByText(`+ ${slug("write")}`).waitFor();
    await review.getByText(`− ${slug("read")}`).waitFor();
    expect(await slugs()).toEqual([slug("read")]);
    await review.getByRole("button", { name: "Save 1 role" }).click();
    await review.waitFor({ state: "hidden" });
    expect(await slugs()).toEqual([slug("write")]);
    await page.getByRole("gridcell", { name: `${slug("write")}, ${name}: granted` }).waitFor();
    await page.getByRole("gridcell", { name: `${slug("read")}, ${name}: not granted` }).waitFor();
  });

  test("permission matrix cell toggled twice is unchanged", async ({ dashboard, open }) => {
    const { name, slug, path } = await aRole(dashboard);
    const page = await open(path);
    await cellOf(page, slug("write"), name).click();
    await page.getByRole("button", { name: "Review 1 change" }).waitFor();
    await cellOf(page, slug("write"), name).click();
    const review = page.getByRole("button", { name: "Review", exact: true });
    expect(await review.getAttribute("title")).toBe("No changes.");
  });

  test("permission matrix is operable by keyboard", async ({ dashboard, open }) => {
    const { name, slug, slugs, path } = await aRole(dashboard);
    const page = await open(path);
    await cellOf(page, slug("read"), name).focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Space");
    await page.getByRole("gridcell", { name: `${slug("write")}, ${name}: will be granted` }).waitFor();
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name }).waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Review 1 change" }).focus();
    await page.keyboard.press("Enter");
    const save = page.getByRole("button", { name: "Save 1 role" });
    await save.and(page.locator(":not([aria-disabled])")).waitFor();
    await save.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await slugs()).toEqual([slug("read"), slug("write")]);
  });

  test("permission matrix shows concurrent changes of a role without losing any", async ({
    dashboard,
    open,
    faults,
  }) => {
    faults.expect(/409/);
    const { name, slug, slugs, path } = await aRole(dashboard);
    const [one, other] = [await open(path), await open(path)];
    for (const page of [one, other]) await cellOf(page, slug("read"), name).waitFor();
    await cellOf(other, slug("write"), name).click();
    await other.getByRole("button", { name: "Review 1 change" }).click();
    const review = other.getByRole("dialog");
    await review.getByRole("button", { name: "Save 1 role" }).and(other.locator(":not([aria-disabled])")).waitFor();
    // The other one reviews what was read before this is saved.
    await cellOf(one, slug("read"), name).click();
    await one.getByRole("button", { name: "Review 1 change" }).click();
    await one.getByRole("button", { name: "Save 1 role" }).click();
    await one.getByRole("dialog").waitFor({ state: "hidden" });
    expect(await slugs()).toEqual([]);

    await review.getByRole("button", { name: "Save 1 role" }).click();
    await review.getByText(`Removed by someone else: ${slug("read")}.`).waitFor();
    expect(await slugs()).toEqual([]);
    await review.getByRole("button", { name: "Save 1 role" }).click();
    await review.waitFor({ state: "hidden" });
    expect(await slugs()).toEqual([slug("write")]);
  });

  test("permission matrix warns before leaving with unsaved changes", async ({ dashboard, open }) => {
    const { name, slug, path } = await aRole(dashboard);
    const page = await open(path);
    await cellOf(page, slug("write"), name).click();
    await page.getByRole("link", { name: "Identities" }).click();
    const dialog = page.getByRole("dialog", { name: "Leave without saving?" });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Review 1 change" }).waitFor();
    await page.getByRole("link", { name: "Identities" }).click();
    await dialog.getByRole("button", { name: "Leave" }).click();
    await page.getByRole("heading", { name: "Identities" }).waitFor();
  });

  test("permission matrix of 1,000 permissions and 100 roles loads on scroll and keeps the DOM small", async ({
    dashboard,
    open,
  }) => {
    const slugs = Array.from({ length: 1000 }, (_, i) => `many.p${String(i).padStart(4, "0")}`);
    for (let i = 0; i < 100; i += 1) {
      const permissions = slugs.filter((_, at) => (at + i) % 10 === 0);
      await dashboard.call("permissions.createRole", { name: `many-${String(i).padStart(3, "0")}`, permissions });
    }
    const page = await open("/permissions?search=many.&roles=many-");
    await cellOf(page, "many.p0000", "many-000").focus();
    const startedMs = performance.now();
    const all = page.getByText(/^1,000 permissions, 100 roles$/);
    await expect
      .poll(
        async () => {
          await page.keyboard.press("Control+End");
          return await all.count();
        },
        { timeout: 60_000 },
      )
      .toBe(1);
    await page.keyboard.press("Control+End");
    await page.getByRole("gridcell", { name: "many.p0999, many-099: not granted" }).waitFor();
    expect(performance.now() - startedMs).toBeLessThan(60_000);
    expect(await page.getByRole("gridcell").count()).toBeLessThan(2500);
  });
});

describe("managed roles", () => {
  test("managed role is locked in the matrix and shows its manifest and YAML", async ({ open }) => {
    const page = await open("/permissions?roles=orders.editor");
    const head = page.getByRole("columnheader", { name: "orders.editor" });
    await head.click();
    const drawer = page.getByRole("dialog", { name: "orders.editor" });
    await drawer.getByText("A manifest manages this object.").waitFor();
    await drawer.getByText(/^kubectl edit -n \S+ role\.postern\.dev\/\S+$/).waitFor();
    await drawer.getByLabel("Name").fill("reader");
    await drawer.getByText(/^spec:\s+name: reader/).waitFor();
    const save = drawer.getByRole("button", { name: "Save" });
    expect(await save.getAttribute("title")).toBe("A manifest manages this object: change it there.");
  });

  test("rejected change of a managed role names its manifest", async ({ dashboard, open, faults }) => {
    faults.expect(/409/);
    const { roleId, name, slug, path } = await aRole(dashboard);
    const page = await open(path);
    await cellOf(page, slug("write"), name).click();
    await page.getByRole("button", { name: "Review 1 change" }).click();
    const review = page.getByRole("dialog");
    await review.getByRole("button", { name: "Save 1 role" }).and(page.locator(":not([aria-disabled])")).waitFor();
    // An operator takes the role over before it is saved.
    const response = await fetch(`${dashboard.url}/v2/permissions.updateRole`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${dashboard.rootKey}`,
        "content-type": "application/json",
        "Postern-Manager": "main/Role/shop/taken",
        "Postern-Adopt": "true",
      },
      body: JSON.stringify({ role: roleId, name }),
    });
    expect(response.status).toBe(200);
    await review.getByRole("button", { name: "Save 1 role" }).click();
    await review.getByText("A manifest manages this object.").waitFor();
    await review.getByText("kubectl edit -n shop role.postern.dev/taken").waitFor();
    await review.getByText(new RegExp(`permissions:\\s+- ${slug("read")}\\s+- ${slug("write")}`)).waitFor();
  });
});

describe("roles and permissions", () => {
  test("dashboard creates, renames and deletes roles and permissions and shows how many keys use them", async ({
    dashboard,
    open,
  }) => {
    const unique = randomBytes(3).toString("hex");
    const [slug, maker, renamed] = [`made.${unique}`, `maker-${unique}`, `maker-${unique}-2`];
    const { apiId } = await dashboard.call("apis.createApi", { name: "uses" });
    const page = await open(`/permissions?search=made.&roles=${maker}`);
    await page.getByRole("button", { name: "Create a permission" }).click();
    await page.getByLabel("Slug").fill(`${slug}*`);
    await page.getByText("The * is literal here.").waitFor();
    await page.getByLabel("Slug").fill("made.*");
    await page.getByText("Grants every permission that matches this pattern").waitFor();
    await page.getByLabel("Slug").fill(slug);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "Create a role" }).click();
    await page.getByLabel("Name").fill(maker);
    const granted = page.getByRole("dialog").getByLabel("Permissions");
    await granted.pressSequentially(`${slug},${slug}.new,`);
    await page
      .getByText(
        `A role named “${maker}” that grants the permissions ${slug} and ${slug}.new. Also creates the permission ${slug}.new.`,
      )
      .waitFor();
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    const { permissions = [] } = await dashboard.call("permissions.getRole", { role: maker });
    expect(permissions.map((one) => one.slug)).toEqual([slug, `${slug}.new`]);
    await dashboard.call("keys.createKey", { apiId, roles: [maker], permissions: [slug] });

    await page.reload();
    await page.getByRole("columnheader", { name: maker }).click();
    const role = page.getByRole("dialog", { name: maker });
    await role.getByText("1 key").waitFor();
    await role.getByLabel("Name").fill(renamed);
    await role.getByRole("button", { name: "Save" }).click();
    await page.getByRole("columnheader", { name: renamed }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByText("1 key lose its permissions").waitFor();
    await page.getByLabel(/^Type/).fill(renamed);
    const asked: string[] = [];
    page.on("request", (request) => void asked.push(new URL(request.url()).pathname));
    await page.getByRole("button", { name: "Delete the role" }).click();
    // Behind a dialog a head is hidden from everyone who asks by its role, so the store is asked.
    await waitFor(
      "the role to be deleted",
      async () => (await dashboard.call("admin.listRoles", { search: maker })).length === 0,
    );
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.getByRole("columnheader", { name: renamed }).waitFor({ state: "hidden" });
    // Of a role that is gone there is nothing to read.
    expect(asked).toContain("/v2/permissions.deleteRole");
    expect(asked).not.toContain("/v2/permissions.getRole");
  });

  test("dashboard shows a role as a manifest that is ready to apply", async ({ dashboard, open }) => {
    const { name, slug, path } = await aRole(dashboard);
    const page = await open(path);
    await page.getByRole("columnheader", { name }).click();
    await page.getByRole("button", { name: "Show as YAML" }).click();
    const text = await page.getByRole("dialog", { name: "Manifest" }).locator("pre").first().innerText();
    expect(text).toContain(`kind: Role\nmetadata:\n  name: ${name}\n`);
    expect(text).toContain(`    - ${slug("read")}\n  adopt: Match`);
  });
});

describe("for each dashboard role", () => {
  test.for(["viewer", "operator"] as const)(
    "permission pages show a %s only the permitted actions",
    async (role, { dashboard, open }) => {
      const { name, slug, slugs, path } = await aRole(dashboard);
      const page = await open(path, { role });
      await cellOf(page, slug("write"), name).click();
      const isViewer = role === "viewer";
      const review = page.getByRole("button", { name: isViewer ? "Review" : "Review 1 change", exact: true });
      if (isViewer) {
        expect(await review.getAttribute("title")).toContain("rbac.*.add_permission_to_role");
        expect(await page.getByRole("grid").getAttribute("aria-readonly")).toBe("true");
      } else {
        await review.click();
        await page.getByRole("button", { name: "Save 1 role" }).click();
        await page.getByRole("dialog").waitFor({ state: "hidden" });
      }
      expect(await slugs()).toEqual(isViewer ? [slug("read")] : [slug("read"), slug("write")]);
    },
  );
});

test("permission matrix keeps marked changes during a lost connection", async ({
  dashboard,
  open,
  context,
  faults,
}) => {
  faults.expect(/ERR_FAILED|ERR_CONNECTION|ERR_INTERNET/);
  const { name, slug, slugs, path } = await aRole(dashboard);
  const page = await open(path);
  await cellOf(page, slug("write"), name).click();
  await page.getByRole("button", { name: "Review 1 change" }).click();
  const save = page.getByRole("button", { name: "Save 1 role" });
  await save.and(page.locator(":not([aria-disabled])")).waitFor();
  await context.route("**/v2/permissions.setRolePermissions", (route) => route.abort());
  await save.click();
  await page.getByText("Check the connection to the server").waitFor();
  await context.unroute("**/v2/permissions.setRolePermissions");
  await save.click();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  expect(await slugs()).toEqual([slug("read"), slug("write")]);
});

test("permission matrix with marked changes is accessible and fits every window size", async ({ dashboard, open }) => {
  const { name, slug, path } = await aRole(dashboard);
  const page = await open(path);
  await cellOf(page, slug("write"), name).click();
  await cellOf(page, slug("read"), name).click();
  await page.getByRole("button", { name: "Review 2 changes" }).waitFor();
  await expectPresentable(page);
});
