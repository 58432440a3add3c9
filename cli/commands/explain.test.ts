import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../api-server/test/app.ts";
import { makeResources, policyBody, type Resources } from "../../api-server/test/resources.ts";
import type { PolicyFields } from "../../core/manifests/from-store/policy-spec.ts";
import { COMMANDS } from "../commands.ts";
import { runCommand } from "../run-command.ts";

const FEW = [{ name: "few", limit: 0, duration: "1h" }];

let t: TestApp;
let resources: Resources;
let url: string;
let dir: string;
beforeAll(async () => {
  t = await buildTestApp();
  resources = makeResources(t.deps.db, { workspaceId: t.workspace.id, ask: (path, body) => t.data(path, body) });
  url = await t.app.listen({ host: "127.0.0.1", port: 0 });
  dir = mkdtempSync(join(tmpdir(), "postern-explain-"));
});
afterAll(async () => {
  await t.close();
  rmSync(dir, { recursive: true });
});

async function run(
  args: readonly string[],
  { rootKey = t.workspace.rootKey, columns }: { rootKey?: string; columns?: number } = {},
) {
  const out: string[] = [];
  const notes: string[] = [];
  const env = { POSTERN_API_URL: url, POSTERN_ROOT_KEY: rootKey };
  const io = {
    env,
    out: (line: string) => void out.push(line),
    note: (line: string) => void notes.push(line),
    columns,
  };
  const code = await runCommand(COMMANDS, ["explain", ...args], io);
  return { code, out, notes };
}

test("explain prints each step with its value, source and age, and its exit code states the outcome", async () => {
  const role = await resources.role(["orders.write"]);
  const { keyId } = await resources.key({ name: "Billing", roles: [role.name], credits: { remaining: 3 } });
  const good = await run(["--key-id", keyId, "--permissions", "orders.write"]);
  expect(good).toMatchObject({ code: 0, notes: [] });
  expect(good.out[0]).toBe("✓ VALID, 200 at a gate");
  expect(good.out.find((line) => line.includes("permissions"))).toMatch(
    new RegExp(`^✓ {2}permissions {2}orders.write +role ${role.name} +\\d+`),
  );
  const poor = await run(["--key-id", keyId, "--credits", "4"]);
  expect(poor.code).toBe(16);
  expect(poor.out.slice(0, 2)).toEqual([
    expect.stringMatching(/^✗ USAGE_EXCEEDED, 429 at a gate, retry after [\dhms]+$/),
    "  credits: 3 credits are left, the request costs 4.",
  ]);
  expect(poor.out.at(-1)).toContain(`key ${keyId}, named Billing`);
});

test("explain reads the key from a file and never prints it", async () => {
  const { key } = await resources.key({ enabled: false });
  const file = join(dir, "key");
  writeFileSync(file, `${key}\n`);
  const ran = await run(["--key-file", file]);
  expect(ran.code).toBe(11);
  expect(JSON.stringify(ran)).not.toContain(key);
});

test("explain evaluates the policy for a request at a gate; --json prints the API response", async () => {
  const { keyId, apiId } = await resources.key();
  const rules: PolicyFields["rules"] = [{ match: { methods: ["POST"], path: { prefix: "/orders" } }, ratelimits: FEW }];
  const { policyId } = await resources.policy(apiId, { rules });
  const args = ["--key-id", keyId, "--policy", policyId];
  expect((await run([...args, "--request", "GET /orders"])).code).toBe(0);
  const refused = await run([...args, "--request", "POST /orders?a=b", "--json"]);
  expect(refused.code).toBe(15);
  expect(refused.out).toHaveLength(1);
  expect(JSON.parse(refused.out[0] ?? "")).toMatchObject({ code: "RATE_LIMITED", rule: 0, keyId });
  expect((await run([...args, "--request", "POST //x"])).code).toBe(17);
});

test("explain uses the host and headers from the options to find the rule, and --json shows the rule's name", async () => {
  const { keyId, apiId } = await resources.key();
  const { policyId } = await resources.policy(apiId, {
    rules: [
      { name: "new", match: { hosts: ["api.test"], headers: [{ name: "X-Version", exact: "2" }] } },
      { name: "never", access: "Deny" },
    ],
  });
  const args = ["--key-id", keyId, "--policy", policyId];
  const found = await run([
    ...args,
    "--host",
    "api.test",
    "--header",
    "x-other: 1",
    "--header",
    "x-version: 2",
    "--json",
  ]);
  expect(JSON.parse(found.out.join(""))).toMatchObject({ code: "VALID", rule: 0, ruleName: "new" });
  const denied = await run([...args, "--host", "api.test"]);
  expect(denied.code).toBe(20);
  expect(denied.out[0]).toBe("✗ DENIED, 403 at a gate");
  expect(denied.out.find((line) => line.includes("rule 2 of 2"))).toContain("rule 2 of 2 (never)");
});

test("explain finds a policy by its manifest's name, even if other names have the same ending", async () => {
  const { keyId, apiId } = await resources.key();
  const other = await resources.key();
  const set = (apiId: string, name: string, rules: PolicyFields["rules"] = []) =>
    t.data("managed.applyObject", {
      ...policyBody(apiId, "x", { rules }),
      manager: name.replace("/", "/ApiKeyPolicy/"),
    });
  await set(apiId, "one/shop/named", [{ match: { methods: ["GET"], path: { prefix: "/mine" } } }]);
  await set(other.apiId, "one/bigshop/named");
  for (const name of ["shop/named", "one/shop/named"]) {
    const ran = await run(["--key-id", keyId, "--policy", name, "--request", "GET /mine", "--json"]);
    expect(JSON.parse(ran.out[0] ?? "")).toMatchObject({ code: "VALID", rule: 0 });
  }
  await set(apiId, "two/shop/named");
  const several = await run(["--key-id", keyId, "--policy", "shop/named"]);
  expect(several).toMatchObject({ code: 1, out: [] });
  expect(several.notes.join()).toMatch(/several policies .*(one|two)\/shop\/named, (one|two)\/shop\/named/);
  const absent = await run(["--key-id", keyId, "--policy", "shop/absent"]);
  expect(absent.notes.join()).toContain("no policy is named shop/absent");
});

test("for a request that a gate rejected, explain takes the method and path from the options", async () => {
  const { keyId, apiId } = await resources.key();
  const { policyId } = await resources.policy(apiId, {
    rules: [{ match: { methods: ["POST"] }, ratelimits: FEW }, {}],
  });
  const requestId = "req_ofTheGate";
  const id = "ev_ofTheGate";
  const of = { workspaceId: t.workspace.id, keySpaceId: "ks_1", apiId, keyId, appId: policyId };
  const what = { outcome: "RATE_LIMITED", tags: [], region: "", spentCredits: 0, latencyMs: 1 };
  t.deps.events.add({ type: "verification", id, requestId, timeMs: Date.now(), source: "sidecar", ...of, ...what });
  await t.ingest();
  const unknown = await run(["--request-id", requestId]);
  expect(unknown).toMatchObject({ code: 2, out: [] });
  expect(unknown.notes.join("\n")).toMatch(
    /^then: RATE_LIMITED, .*does not store the method and path of req_ofTheGate; set --request/s,
  );
  const asked = await run(["--request-id", requestId, "--request", "POST /orders"]);
  expect(asked.code).toBe(15);
  expect(asked.out.slice(0, 3)).toEqual([
    expect.stringMatching("^then: RATE_LIMITED"),
    "now:",
    expect.stringMatching("✗ RATE_LIMITED"),
  ]);
});

test("explain finds a request by id, with its stored events and the current state of its key", async () => {
  const { key, keyId } = await resources.key();
  const { body } = await t.call("keys.verifyKey", { key });
  await t.ingest();
  await t.data("keys.updateKey", { keyId, enabled: false });
  const ran = await run(["--request-id", body.meta.requestId]);
  expect(ran.code).toBe(11);
  expect(ran.out.slice(0, 3)).toEqual([
    expect.stringMatching(new RegExp(`^then: VALID, decided .* by the API for ${keyId}$`)),
    expect.stringMatching(/^now \(permissions: none, cost: 1; the original values are not stored/),
    "✗ DISABLED, 401 at a gate",
  ]);
  expect((await run(["--request-id", "req_never"])).notes.join()).toContain("no verification of req_never is stored");
});

test.each([
  { name: "no key", args: [], says: "set exactly one of --key-id" },
  { name: "two keys", args: ["--key-id", "key_1", "--key-file", "x"], says: "set exactly one of --key-id" },
  {
    name: "a path without a policy",
    args: ["--key-id", "key_1", "--request", "GET /"],
    says: "--request requires --policy",
  },
  {
    name: "a header without a policy",
    args: ["--key-id", "key_1", "--header", "a: b"],
    says: "--header requires --policy",
  },
  {
    name: "a header that is none",
    args: ["--key-id", "k", "--policy", "p", "--header", "none"],
    says: "'NAME: VALUE'",
  },
  {
    name: "a request that is none",
    args: ["--key-id", "k", "--policy", "p", "--request", "/orders"],
    says: "'POST /orders'",
  },
  {
    name: "a cost beside a policy",
    args: ["--key-id", "key_1", "--policy", "pol_1", "--credits", "1"],
    says: "with --policy the rules of the policy set them",
  },
])("explain with $name is a usage error that states what is expected", async ({ args, says }) => {
  const ran = await run(args);
  expect(ran).toMatchObject({ code: 2, out: [] });
  expect(ran.notes.join()).toContain(says);
});

test("explain prints an API error and exits with 1", async () => {
  const absent = await run(["--key-id", "key_4fGh7Jk2LmN8pQrS"]);
  expect(absent).toMatchObject({ code: 1, out: [] });
  expect(absent.notes.join()).toContain("key_4fGh7Jk2LmN8pQrS");
  const { keyId } = await resources.key();
  const unread = await run(["--key-id", keyId, "--permissions", "a AND"]);
  expect(unread.notes.join()).toContain("Position 5");
  const rootKey = await t.rootKey(["api.*.verify_key"]);
  const refused = await run(["--key-id", keyId], { rootKey });
  expect(refused.code).toBe(1);
  expect(refused.notes.join()).toContain("read_key");
});

test("explain prints customer names without control characters", async () => {
  const { keyId } = await resources.key({ name: "\u001b[2Jgone" });
  const { out } = await run(["--key-id", keyId]);
  expect(out.join("\n")).not.toContain("\u001b");
});
