import { describe, expect } from "vitest";
import { policyBody } from "../../api-server/test/resources.ts";
import { waitFor } from "../harness/wait.ts";
import { expectAccessible, expectPresentable } from "./accessible.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";

const test = dashboardTest();
const HOUR_MS = 3_600_000;

async function newKey({ call }: Dashboard, more: object = {}) {
  const { apiId } = await call("apis.createApi", { name: "explained" });
  const made = await call("keys.createKey", { apiId, ...more });
  return { apiId, ...made };
}

describe("explain", () => {
  test("explain page hashes a pasted key in the browser and discards it", async ({ dashboard, open, context }) => {
    const { key } = await newKey(dashboard, { enabled: false });
    const sent: string[] = [];
    context.on("request", (request) =>
      sent.push(`${request.url()} ${request.postData() ?? ""} ${JSON.stringify(request.headers())}`),
    );
    const page = await open("/explain");
    await page.getByLabel("Key, key id or request id").fill(key);
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page.getByText("The key is disabled.").waitFor();
    await page.getByText("This step decides.").waitFor();
    expect(await page.getByLabel("Key, key id or request id").inputValue()).toBe("");
    expect(sent.some((text) => text.includes("keyHash"))).toBe(true);
    expect(sent.filter((text) => text.includes(key) || text.includes(encodeURIComponent(key)))).toEqual([]);
    expect(page.url()).not.toContain(key);
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML]),
    );
    expect(kept).not.toContain(key);
  });

  test("explain page shows each step with the current limits and charges nothing", async ({ dashboard, open }) => {
    const { key, keyId } = await newKey(dashboard, {
      ratelimits: [{ name: "requests", limit: 5, duration: HOUR_MS, autoApply: true }],
      credits: { remaining: 7 },
    });
    await dashboard.call("keys.verifyKey", { key });
    const page = await open(`/explain?keyId=${keyId}`);
    await page.getByText("1 of 5 in 1 h").waitFor();
    await page.getByText("6 remaining, cost 1").waitFor();
    expect(await page.getByRole("list", { name: "Steps" }).getByRole("listitem").count()).toBe(9);
    await page.getByLabel("Required permissions").fill("orders.write");
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page.getByText("The key lacks orders.write.").waitFor();
    const again = await dashboard.call("keys.verifyKey", { key });
    expect(again.ratelimits?.[0]?.remaining).toBe(3);
    await expectAccessible(page);
  });

  test("explain page shows the matching rule of a gate request", async ({ dashboard, open }) => {
    const [policy] = await dashboard.call("admin.listPolicies", { search: "shop/orders" });
    if (policy === undefined) throw new Error("the manifests have no policy");
    const { keyId } = await dashboard.call("keys.createKey", { apiId: policy.apiId });
    const page = await open(`/explain?keyId=${keyId}&policyId=${policy.policyId}`);
    await page.getByText(/at a gate, decided/).waitFor();
    await page
      .getByText(/no rule|rule \d/)
      .first()
      .waitFor();
  });

  test("explain page matches the host and headers of a gate request, and shows a denial", async ({
    dashboard,
    open,
  }) => {
    const { apiId, keyId } = await newKey(dashboard);
    const body = policyBody(apiId, "explained", {
      rules: [
        {
          name: "second",
          match: { hosts: ["api.example.com"], headers: [{ name: "X-Api-Version", exact: "2" }] },
          ratelimits: [{ name: "versions", by: ["host", "header.X-Api-Version"], limit: 60, duration: "1h" }],
        },
        {
          match: { path: { exact: "/catalogue" } },
          access: "Anonymous",
          ratelimits: [{ name: "guests", by: ["address"], limit: 2, duration: "1h" }],
        },
      ],
      defaultAccess: "Deny",
      clientAddress: { from: "Connection" },
    });
    const { policyId } = (await dashboard.call("managed.applyObject", body)).ids;
    const page = await open(`/explain?keyId=${keyId}&policyId=${policyId}`);
    const explain = page.getByRole("button", { name: "Explain", exact: true });
    await page.getByText("DENIED", { exact: true }).waitFor();
    await page.getByText("403 at a gate, decided").waitFor();
    await page.getByText("None of the 2 rules matches, so the request is denied. This step decides.").waitFor();
    await page.getByLabel("Host").fill("api.example.com:8443");
    await page.getByLabel("Headers").fill("X-Api-Version 2");
    await explain.click();
    await page.getByText("Line 1: expected NAME: VALUE").waitFor();
    await page.getByText("DENIED", { exact: true }).waitFor();
    await page.getByLabel("Headers").fill("x-api-version: 2");
    await explain.click();
    await page.getByText("rule 1 of 2 (second)").waitFor();
    await page.getByRole("cell", { name: "rule host=api.example.com,header.x-api-version=2" }).waitFor();
    await page.getByText("0 of 60 in 1 h").waitFor();
    await page.getByLabel("Headers").fill("");
    await page.getByLabel("Path").fill("/catalogue");
    await page.getByLabel("Client address").fill("203.0.113.9");
    await explain.click();
    await page.getByText("ANONYMOUS", { exact: true }).waitFor();
    await page.getByRole("cell", { name: "rule address=203.0.113.9" }).waitFor();
    await page.getByText("0 of 2 in 1 h").waitFor();
    await expectAccessible(page);
  });

  test("explain page finds a request by id and shows the current result next to it", async ({ dashboard, open }) => {
    const { key, keyId } = await newKey(dashboard);
    const response = await fetch(`${dashboard.url}/v2/keys.verifyKey`, {
      method: "POST",
      headers: { authorization: `Bearer ${dashboard.rootKey}`, "content-type": "application/json" },
      body: JSON.stringify({ key }),
    });
    const { meta } = (await response.json()) as { meta: { requestId: string } };
    await waitFor("the event", async () => {
      const { verifications } = await dashboard.call("admin.explainRequest", { requestId: meta.requestId });
      return verifications.length > 0;
    });
    await dashboard.call("keys.updateKey", { keyId, enabled: false });
    const page = await open("/explain");
    await page.getByLabel("Key, key id or request id").fill(meta.requestId);
    await page.keyboard.press("Enter");
    await page.getByText("decided").first().waitFor();
    await page.getByText("The key is disabled.").waitFor();
    expect(new URL(page.url()).searchParams.get("requestId")).toBe(meta.requestId);
  });

  test("explain page shows the position of a syntax error in a permission query", async ({
    dashboard,
    open,
    faults,
  }) => {
    faults.expect(/400/);
    const { keyId } = await newKey(dashboard);
    const page = await open(`/explain?keyId=${keyId}`);
    await page.getByLabel("Required permissions").fill("a AND");
    await page.getByRole("button", { name: "Explain", exact: true }).click();
    await page
      .getByText(/Position 5/)
      .first()
      .waitFor();
  });

  test("explain page shows hostile names as text", async ({ dashboard, open }) => {
    const name = `<img src=x onerror="document.title='stolen'">`;
    const { keyId } = await newKey(dashboard, { name });
    const page = await open(`/explain?keyId=${keyId}`);
    await page.getByText(name).first().waitFor();
    expect(await page.title()).toBe("Explain · Postern");
  });

  test("key explanation is accessible and fits every window size", async ({ dashboard, open }) => {
    const { keyId } = await newKey(dashboard);
    const page = await open(`/explain?keyId=${keyId}`);
    await page.getByText("Now:").waitFor();
    await expectPresentable(page);
  });

  test.for(["viewer", "operator"] as const)("explain page is available to a %s", async (role, { dashboard, open }) => {
    const { keyId } = await newKey(dashboard);
    const page = await open(`/explain?keyId=${keyId}`, { role });
    await page.getByText("VALID").waitFor();
  });
});
