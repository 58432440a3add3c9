import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "vitest";
import { expectPresentable } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { dashboardTest } from "./harness.ts";

const test = dashboardTest();

test("home shows gates, traffic and the rule that rejects most requests", async ({ dashboard, open }) => {
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

test("home shows the keys that expire next, and links to the list of all of them", async ({ dashboard, open }) => {
  const { apiId } = await dashboard.call("apis.createApi", { name: "expiring <b>api</b>" });
  const page = await open("/");
  const panel = page.getByRole("region", { name: "Keys that expire soon" });
  await panel.getByText("No key expires within 30 days.").waitFor();
  const inDays = (days: number): number => Date.now() + days * 86_400_000 + 60_000;
  for (const days of [9, 2, 29, 5, 7, 12, 31]) {
    await dashboard.call("keys.createKey", { apiId, name: `ends after ${days} <i>`, expires: inDays(days) });
  }
  await dashboard.call("keys.createKey", { apiId, name: "off", expires: inDays(1), enabled: false });
  await page.reload();
  await panel.getByText("ends after 2 <i>").waitFor();
  await expect
    .poll(() => panel.getByRole("rowheader").allTextContents())
    .toEqual([2, 5, 7, 9, 12].map((days) => `ends after ${days} <i>`));
  await expect.poll(() => panel.getByRole("row").nth(1).textContent()).toContain("expiring <b>api</b>in 2 d");
  expect(await panel.locator("time").first().getAttribute("title")).toMatch(/ UTC$/);
  await expectPresentable(page);
  await panel.getByRole("link", { name: "All within 30 days" }).click();
  await page.getByText("6 keys", { exact: true }).waitFor();
  await page.goBack();
  await panel.getByRole("link", { name: "ends after 2 <i>" }).click();
  await page.getByRole("heading", { name: "ends after 2 <i>" }).waitFor();
});

test("home says that usage is off instead of showing an error", async ({ dashboard, open }) => {
  const { workspaceId } = await dashboard.call("admin.createWorkspace", { name: "without-usage" });
  await inDatabase(dashboard, "insert into analytics_settings (workspace_id, enabled) values ($1, false)", [
    workspaceId,
  ]);
  const page = await open("/nowhere");
  const asked: string[] = [];
  page.on("request", (request) => void asked.push(request.url()));
  await page.goto(`${dashboard.url}/dashboard/?workspace=${workspaceId}`);
  await page.getByText("Usage queries are off for this workspace.").waitFor();
  await page.getByText("No key expires within 30 days.").waitFor();
  expect(asked.filter((url) => url.includes("/v2/analytics."))).toEqual([]);
  expect(await page.locator("main").innerText()).not.toContain("Loading");
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
