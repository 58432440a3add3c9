import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "vitest";
import { expectPresentable } from "./accessible.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

test("home shows gates, traffic and the rule that rejects most", async ({ dashboard, open }) => {
  const { sidecarUrl, call } = dashboard;
  const { apiId } = await call("apis.createApi", { name: "home <b>api</b>" });
  await call("keys.createKey", { apiId });
  // The policy of the quickstart needs a key here.
  for (let n = 0; n < 3; n++) expect((await fetch(`${sidecarUrl}/orders`, { method: "POST" })).status).toBe(401);
  const page = await open("/");
  const rejections = page.getByRole("region", { name: "Most rejections" });
  const row = rejections.getByRole("row").nth(1);
  await expect.poll(() => row.textContent(), { timeout: 30_000 }).toMatch(/orders.*rule 2.*MISSING_KEY.*3$/);
  await page.getByRole("region", { name: "Gates", exact: true }).getByText("in effect").waitFor();
  await page.getByRole("heading", { name: "Verifications of the last 24 hours" }).waitFor();
  expect(await page.getByRole("heading", { name: "First steps" }).count()).toBe(0);
  await expectPresentable(page);
  await rejections.getByRole("link", { name: /orders/ }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/dashboard/policies/"));
});

test("home does not show an unreadable list of policies as an empty workspace", async ({ open, faults }) => {
  faults.expect(/\b503\b/);
  const page = await open("/identities");
  await page.route("**/v2/admin.listPolicies", (route) => route.fulfill({ status: 503, body: "{}" }));
  await page.getByRole("navigation").getByRole("link", { name: "Home" }).click();
  await page.getByRole("button", { name: "Try again" }).first().waitFor({ timeout: 40_000 });
  const text = await page.locator("main").innerText();
  for (const claim of ["No policies yet", "no rejected requests", "First steps"]) expect(text).not.toContain(claim);
});

test("home shows the rejections of a policy whose rules cannot be read", async ({
  dashboard,
  open,
  context,
  faults,
}) => {
  faults.expect(/\b500\b/);
  expect((await fetch(`${dashboard.sidecarUrl}/orders`, { method: "POST" })).status).toBe(401);
  await context.route("**/v2/admin.getPolicy", (route) => route.fulfill({ status: 500, body: "{}" }));
  const page = await open("/");
  const row = page.getByRole("region", { name: "Most rejections" }).getByRole("row").nth(1);
  await expect.poll(() => row.textContent(), { timeout: 30_000 }).toMatch(/^dev\/shop\/orders[1-9]\d*$/);
});

test("home of an empty workspace leads through the first steps with commands that work", async ({
  dashboard,
  open,
}) => {
  const { workspaceId } = await dashboard.call("admin.createWorkspace", { name: "brand-new" });
  const page = await open(`/?workspace=${workspaceId}`);
  const steps = page.getByRole("region", { name: "First steps" });
  const command = await steps.locator("pre").innerText();
  const run = promisify(execFile);
  const { stdout } = await run("bash", ["-c", command.replace("YOUR_ROOT_KEY", dashboard.rootKey)]);
  expect(JSON.parse(stdout).data.apiId).toMatch(/^api_/);
  await expectPresentable(page);
  await page.setViewportSize({ width: 1280, height: 800 });
  await steps.getByRole("link", { name: "Create an API" }).click();
  await page.getByRole("dialog").getByLabel("Name", { exact: true }).fill("first-api");
  await page.getByRole("dialog").getByRole("button", { name: "Create", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.getByRole("navigation").getByRole("link", { name: "Home" }).click();
  await steps.getByText("(done)").waitFor();
  expect(await steps.locator("pre").innerText()).toMatch(/keys\.createKey(.|\n)*"apiId":"api_/);
});
