import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { waitFor } from "../harness/wait.ts";
import { expectAccessible, expectNoSideways, expectPresentable } from "./accessible.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();

async function managedPolicy({ call }: Dashboard) {
  return await waitFor("the policy of the manifests with its gate", async () => {
    const all = await call("admin.listPolicies", { search: "shop/orders" });
    return all.find(({ dataPlane, manager }) => manager !== undefined && (dataPlane?.pods ?? 0) > 0);
  });
}

async function editPolicy({ manifests }: Dashboard, edit: (text: string) => string): Promise<void> {
  const path = join(manifests, "policy.yaml");
  await writeFile(path, edit(await readFile(path, "utf8")));
}

describe("policies and pods", () => {
  test("policy list shows the gate state of each policy and opens its page", async ({ dashboard, open }) => {
    const policy = await managedPolicy(dashboard);
    const page = await open("/policies");
    const row = page.getByRole("row").filter({ hasText: policy.name });
    await row.getByText("in effect").waitFor();
    await row.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: policy.name }).waitFor();
    await page.getByText("A manifest manages this object.").waitFor();
    await page.getByRole("button", { name: "Show as YAML" }).click();
    await page.getByRole("dialog").getByText("kind: ApiKeyPolicy").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("table", { name: "Pods" }).getByText("updated").waitFor();
  });

  test("policy page shows manifest changes and the Audit rejections of each rule without a reload", async ({
    dashboard,
    open,
  }) => {
    const policy = await managedPolicy(dashboard);
    const page = await open(`/policies/${policy.policyId}`);
    await page.getByText(`${policy.generation}, version ${policy.version}`).waitFor();
    await editPolicy(dashboard, (text) => text.replace("mode: Enforce", "mode: Audit"));
    await page.getByText("Audit: rejects no requests, and counts those that it would reject").waitFor();
    await page.getByText("in effect").first().waitFor();
    const { sidecarUrl } = dashboard;
    if (sidecarUrl === null) throw new Error("dev runs no sidecar");
    for (let i = 0; i < 7; i++) await fetch(`${sidecarUrl}/audited-${i}`).then((response) => response.arrayBuffer());
    const refusals = page.getByRole("region", { name: "Rejections by rule" });
    await refusals.getByText("Requests that would have been rejected, by rule").waitFor();
    await refusals.getByRole("row").filter({ hasText: "MISSING_KEY" }).getByText("7", { exact: true }).waitFor();
    await page.getByRole("figure", { name: /Data age of the pods/ }).waitFor();
    await expectAccessible(page);
  });

  test("policy page shows every field of the rules, and the manifest of the policy", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "second edition" });
    const body = policyBody(apiId, "second-edition", {
      rules: [
        {
          name: "refund",
          match: {
            methods: ["POST"],
            path: { template: "/orders/{order}/refund" },
            hosts: ["api.example.com"],
            headers: [{ name: "X-Api-Version", exact: "2" }],
          },
          ratelimits: [{ name: "guests", by: ["key", "path.order"], limit: 60, duration: "1m" }],
        },
        {
          match: { path: { prefix: "/catalogue" } },
          access: "Anonymous",
          ratelimits: [{ name: "guests", by: ["address"], limit: 60, duration: "1m" }],
        },
        { match: { path: { prefix: "/internal" } }, access: "Deny" },
      ],
      defaultAccess: "Deny",
      failedAttempts: { limit: 20, duration: "1m" },
      clientAddress: { from: "Connection", ipv6PrefixBits: 56 },
    });
    const { policyId } = (await dashboard.call("managed.applyObject", body)).ids;
    const page = await open(`/policies/${policyId}`, { width: 375 });
    const list = page.getByRole("region", { name: "Rules" });
    await list.waitFor();
    expect(await list.getByRole("listitem").allInnerTexts()).toEqual([
      "refund POST /orders/{order}/refund at api.example.com with X-Api-Version: 2: a valid key, at most 60 per 1 min for each key and {order}",
      "any method /catalogue/…: admitted without a key, at most 60 per 1 min for each address",
      "any method /internal/…: denied with 403",
      "All other requests: denied with 403",
    ]);
    await page.getByText("at most 20 per 1 min for each address, then 429").waitFor();
    await page.getByText("the connection; IPv6 counted by /56").waitFor();
    await expectNoSideways(page);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Show as YAML" }).click();
    const manifest = page.getByRole("dialog");
    for (const text of [
      "name: refund",
      /template: .?\/orders\/\{order\}\/refund/,
      "defaultAccess: Deny",
      "ipv6PrefixBits: 56",
    ])
      await manifest.getByText(text).waitFor();
  });

  test("policy list of 1,000 policies loads and scrolls without long tasks", async ({ dashboard, open }) => {
    const { apiId } = await dashboard.call("apis.createApi", { name: "many" });
    for (let at = 0; at < 1_000; at += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, i) =>
          dashboard.call("managed.applyObject", policyBody(apiId, `many-${at + i}`)),
        ),
      );
    }
    const page = await open("/policies?search=many-");
    await page.getByRole("row").nth(1).waitFor();
    await page.evaluate(() => {
      const seen = globalThis as unknown as { longTasks: number[] };
      seen.longTasks = [];
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) seen.longTasks.push(duration);
      }).observe({ entryTypes: ["longtask"] });
    });
    const startedMs = performance.now();
    await page.getByLabel("Name contains").fill("many-99");
    await page.getByText("main/shop/many-990").waitFor();
    const tookMs = performance.now() - startedMs;
    await page.getByLabel("Name contains").fill("many-");
    await page.getByText(/100 policies loaded; there are more/).waitFor();
    // Each step goes to the end of what was read, and the next page is asked for.
    await waitFor(
      "the end of the list",
      async () => {
        await page.locator(".table-scroller").evaluate((element) => element.scrollTo({ top: element.scrollHeight }));
        return (await page.getByText(/^1,?000 policies$/).count()) > 0;
      },
      { deadlineMs: 60_000, everyMs: 100 },
    );
    expect(await page.getByRole("row").count()).toBeLessThan(60);
    const longest = Math.max(
      0,
      ...(await page.evaluate(() => (globalThis as unknown as { longTasks: number[] }).longTasks)),
    );
    console.log(
      `first row after a filter: ${Math.round(tookMs)} ms (250 of them wait for the last letter); longest task: ${Math.round(longest)} ms`,
    );
    // What is promised is 500 and 100 ms on a machine that does nothing else; tests share theirs with others.
    const isQuiet = process.env.QUIET_MACHINE === "1";
    expect(tookMs).toBeLessThan(isQuiet ? 500 : 5_000);
    expect(longest).toBeLessThan(isQuiet ? 100 : 1_000);
  }, 120_000);

  test("policy page is accessible and fits every window size", async ({ dashboard, open }) => {
    const policy = await managedPolicy(dashboard);
    const page = await open(`/policies/${policy.policyId}`);
    await page.getByRole("heading", { name: "Pods" }).waitFor();
    await expectPresentable(page);
  });

  test.for(["viewer", "operator"] as const)("policy pages are readable for a %s", async (role, { dashboard, open }) => {
    const policy = await managedPolicy(dashboard);
    const page = await open(`/policies?search=${encodeURIComponent(policy.name)}`, { role });
    await page.getByText(policy.name).waitFor();
  });

  test("page of a missing policy says that the policy does not exist", async ({ open, faults }) => {
    faults.expect(/404/);
    const page = await open("/policies/pol_0000000000000000");
    await page.getByText(/There is no policy pol_0000000000000000/).waitFor();
  });
});
