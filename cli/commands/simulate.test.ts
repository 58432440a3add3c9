import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMMANDS } from "../commands.ts";
import { runCommand } from "../run-command.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const MANIFESTS = join(ROOT, "examples/quickstart");
const FIXTURES = join(ROOT, "examples/simulate/fixtures.yaml");
const CASES = join(ROOT, "examples/simulate/cases.yaml");

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "postern-decide-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

const file = (name: string, text: string): string => {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
};

async function run(...args: string[]) {
  const out: string[] = [];
  const notes: string[] = [];
  const io = { env: {}, out: (line: string) => void out.push(line), note: (line: string) => void notes.push(line) };
  const code = await runCommand(COMMANDS, ["simulate", ...args], io);
  return { code, out, notes };
}
const example = (...args: string[]) => run("-f", MANIFESTS, "--fixtures", FIXTURES, ...args);

const policy = (spec: string, name = "orders") => `
apiVersion: postern.dev/v1alpha1
kind: ApiKeyPolicy
metadata: { name: ${name}, namespace: shop }
spec:
  api: { name: ${name} }
  target: { port: http }
${spec}`;

describe("the example", () => {
  test("simulate reports that all cases have the expected outcome", async () => {
    const { code, out, notes } = await example("--cases", CASES);
    expect(notes).toEqual([]);
    expect(out.filter((line) => !line.startsWith("✓"))).toEqual(["10 cases, 0 failed"]);
    expect(code).toBe(0);
  });

  test("simulate names a failed case with its line, difference and deciding step, and exits with 1", async () => {
    const text = readFileSync(CASES, "utf8").replace("expect: DISABLED", "expect: { code: VALID, passed: 1 }");
    const { code, out } = await example("--cases", file("other-cases.yaml", text));
    const line = text.split("\n").findIndex((one) => one.includes("a key that was disabled")) + 1;
    expect(code).toBe(1);
    expect(out.filter((one) => !one.startsWith("✓"))).toEqual([
      `✗ a key that was disabled (${join(dir, "other-cases.yaml")}:${line})`,
      "    POST /orders: code: expected VALID, got DISABLED",
      "    POST /orders: passed: expected 1, got 0",
      "    enabled: The key is disabled.",
      "10 cases, 1 failed",
    ]);
    const asJson = await example("--cases", join(dir, "other-cases.yaml"), "--json");
    expect(JSON.parse(asJson.out.join(""))).toMatchObject({ differ: 1 });
  });

  test("simulate charges requests in order and explains each", async () => {
    const asked = ["--request", "POST /orders", "--request", "GET /else?a=b", "--key", "editor", "--times", "3"];
    const { code, out } = await example(...asked, "--json");
    const { decisions } = JSON.parse(out.join(""));
    expect(code).toBe(0);
    expect(decisions).toMatchObject([
      { request: "POST /orders", key: "editor", policy: "shop/orders", code: "VALID", passed: 3, rule: 1 },
      { request: "GET /else?a=b", code: "VALID", rule: -1, limits: [{ name: "burst", used: 5 }] },
    ]);
    expect(decisions[0].limits).toMatchObject([
      { name: "burst", source: "identity", limit: 20 },
      { name: "writes", source: "rule", used: 2 },
      { source: "namespace", limit: 100_000, override: { identifier: "premium_*", limitBefore: 5000 } },
    ]);
  });
});

describe("the exit code and the first line say how it ends", () => {
  test.each([
    { args: ["--request", "GET /healthz", "--no-key"], code: 0, first: "✓ ANONYMOUS, 200 at a gate" },
    {
      args: ["--request", "POST /orders", "--key", "reader"],
      code: 14,
      first: "✗ INSUFFICIENT_PERMISSIONS, 403 at a gate",
    },
    { args: ["--request", "POST /orders", "--key", "former"], code: 12, first: "✗ EXPIRED, 401 at a gate" },
    { args: ["--request", "POST /orders", "--no-key"], code: 18, first: "✗ MISSING_KEY, 401 at a gate" },
    { args: ["--request", "GET /a//b", "--no-key"], code: 17, first: "✗ MALFORMED, 400 at a gate" },
    {
      args: ["--request", "POST /orders", "--key", "editor", "--times", "11"],
      code: 15,
      first: expect.stringMatching(/^✗ RATE_LIMITED, 429 at a gate, retry after [\dhms]+$/),
    },
    {
      args: ["--request", "GET /", "--no-key", "--header", "X-API-Key: never"],
      code: 10,
      first: "✗ NOT_FOUND, 401 at a gate",
    },
    {
      args: ["--request", "POST /orders", "--key", "former", "--at", "2026-12-01"],
      code: 0,
      first: "✓ VALID, 200 at a gate",
    },
  ])("postern simulate prints the expected outcome for: $args", async ({ args, code, first }) => {
    const ran = await example(...args);
    expect(ran.notes).toEqual([]);
    expect([ran.code, ran.out[1]]).toEqual([code, first]);
  });
});

describe("what a policy says of requests", () => {
  const fixtures = "keys: [{ name: one }]\napis: [{ ipAllowList: [10.0.0.0/8] }]";

  test("simulate sends the key where the policy expects it, even in a query", async () => {
    const manifest = file("query.yaml", policy("  credentials: [{ query: { name: key } }]"));
    const ran = await run("-f", manifest, "--fixtures", file("f.yaml", fixtures), "--request", "GET /?a=b");
    expect(ran).toMatchObject({ code: 0, notes: [] });
  });

  test("simulate derives the client address as the policy defines", async () => {
    const manifest = file(
      "forwarded.yaml",
      policy("  clientAddress: { from: ForwardedFor, trustedProxies: [192.0.2.0/24] }"),
    );
    const ask = (header: string) =>
      run(
        "-f",
        manifest,
        "--fixtures",
        file("f.yaml", fixtures),
        "--request",
        "GET /",
        "--header",
        header,
        "--client-address",
        "192.0.2.9",
      );
    expect((await ask("X-Forwarded-For: 10.1.2.3")).code).toBe(0);
    expect((await ask("X-Forwarded-For: 203.0.113.1")).code).toBe(13);
  });

  test("simulate in mode Audit admits every request and prints the code", async () => {
    const manifest = file("audit.yaml", policy("  mode: Audit"));
    const disabled = file("d.yaml", "keys: [{ name: one, enabled: false }]");
    const { code, out } = await run("-f", manifest, "--fixtures", disabled, "--request", "GET /");
    expect(code).toBe(0);
    expect(out[1]).toBe("✓ DISABLED, allowed, because the policy is in Audit mode");
  });

  test("simulate requires --policy if several policies match, and rejects the key of another policy", async () => {
    const both = ["-f", file("a.yaml", policy("", "orders")), "-f", file("b.yaml", policy("", "carts"))];
    const as = ["--fixtures", file("k.yaml", "keys: [{ name: one, policy: shop/orders }]"), "--request", "GET /"];
    expect((await run(...both, ...as)).notes.join()).toContain(
      "several ApiKeyPolicies match; choose one of shop/orders, shop/carts",
    );
    expect((await run(...both, ...as, "--policy", "orders")).code).toBe(0);
    expect((await run(...both, ...as, "--policy", "shop/carts")).code).toBe(10);
  });

  test("simulate can send the key of an ApiKey manifest by its name", async () => {
    const apiKey = `---
apiVersion: postern.dev/v1alpha1
kind: ApiKey
metadata: { name: reports, namespace: shop }
spec:
  policyRef: { name: orders }
  secretRef: { name: reports }
  credits: { remaining: 1 }`;
    const manifest = file("with-key.yaml", `${policy("")}\n${apiKey}`);
    const ran = await run("-f", manifest, "--request", "GET /", "--key", "reports", "--times", "2");
    expect(ran).toMatchObject({ code: 16, notes: [] });
  });
});

describe("rules by host and header, and limits of anonymous rules", () => {
  const manifest = () =>
    file(
      "guests.yaml",
      policy(`  clientAddress: { from: Connection }
  defaultAccess: Deny
  rules:
    - name: beta
      match: { hosts: [beta.test], headers: [{ name: X-Beta, exact: "1" }] }
    - name: catalogue
      match: { path: { template: "/catalogue/{item}" } }
      access: Anonymous
      ratelimits: [{ name: guests, limit: 2, duration: 1m, by: [address, path.item] }]`),
    );
  const one = () => file("one.yaml", "keys: [{ name: one }]");

  test("simulate explains an exhausted limit by address and path", async () => {
    const asked = ["--request", "GET /catalogue/7", "--no-key", "--client-address", "192.0.2.7", "--times", "3"];
    const ran = await run("-f", manifest(), ...asked);
    expect([ran.code, ran.notes]).toEqual([15, []]);
    expect(ran.out.slice(1, 3)).toEqual([
      expect.stringMatching(/^✗ RATE_LIMITED, 429 at a gate, retry after/),
      "  limits: Used up: guests address=192.0.2.7,path.item=7, 2 of 2 used in 1m (of the rule), it costs 1.",
    ]);
    const json = await run("-f", manifest(), ...asked.slice(0, -2), "--json");
    expect(JSON.parse(json.out.join("")).decisions).toMatchObject([
      {
        code: "ANONYMOUS",
        rule: 1,
        ruleName: "catalogue",
        limits: [{ used: 0, identifier: expect.stringContaining("path.item=7") }],
      },
    ]);
  });

  test("simulate takes host and headers from options and from cases", async () => {
    const beta = ["--host", "beta.test", "--header", "X-Beta: 1"];
    const ask = (...args: string[]) => run("-f", manifest(), "--fixtures", one(), "--request", "GET /", ...args);
    expect((await ask(...beta)).code).toBe(0);
    expect((await ask(...beta.slice(2))).code).toBe(20);
    expect((await ask(...beta, "--header", "x-beta: 1")).code).toBe(17);
    const cases = `cases:
  - { name: beta, request: GET /, host: beta.test, headers: { X-Beta: "1" }, expect: { code: VALID, ruleName: beta } }
  - { name: else, request: GET /, host: other.test, headers: { X-Beta: "1" }, expect: { code: DENIED, status: 403 } }
  - { name: a host among the headers, request: GET /, headers: { X-Beta: "1", host: beta.test }, expect: VALID }
  - { name: guests, request: GET /catalogue/1, key: false, times: 3, expect: { code: RATE_LIMITED, passed: 2, ruleName: catalogue } }
`;
    const ran = await run("-f", manifest(), "--fixtures", one(), "--cases", file("hosts.yaml", cases));
    expect(ran).toMatchObject({ code: 0, notes: [] });
  });
});

test("simulate rejects requests from an address after too many failed attempts, except with a key that succeeded from it before", async () => {
  const manifest = file(
    "attempts.yaml",
    policy("  clientAddress: { from: Connection }\n  failedAttempts: { limit: 2, duration: 1m }"),
  );
  const keys = file("three.yaml", "keys: [{ name: good }, { name: other }, { name: off, enabled: false }]");
  const cases = `cases:
  - name: guessing
    steps:
      - { request: GET /, key: good, expect: VALID }
      - { request: GET /, key: off, times: 3, expect: { code: TOO_MANY_ATTEMPTS, status: 429 } }
      - { request: GET /, key: other, expect: TOO_MANY_ATTEMPTS }
      - { request: GET /, key: good, expect: VALID }
      - { request: GET /, key: other, after: 3m, expect: VALID }
`;
  const ran = await run("-f", manifest, "--fixtures", keys, "--cases", file("attempts-cases.yaml", cases));
  expect(ran).toMatchObject({ code: 0, notes: [] });
});

describe("files that are wrong are refused with the line of each problem", () => {
  test.each([
    {
      name: "an unknown field",
      text: "keys:\n  - name: one\n    color: red",
      says: ["fixtures.yaml:2: keys[0].color: is not a known field"],
    },
    {
      name: "a field of the wrong type",
      text: "keys:\n  - name: one\n    credits: many\n  - name: 5",
      says: [
        expect.stringContaining("fixtures.yaml:3: keys[0].credits: "),
        expect.stringContaining("fixtures.yaml:4: keys[1].name: "),
      ],
    },
    { name: "what is no YAML", text: "keys: [", says: [expect.stringMatching(/fixtures\.yaml:1: /)] },
    {
      name: "a role that nothing has",
      text: "\nkeys:\n  - name: one\n    roles: [ghost]",
      says: ["fixtures.yaml:4: keys[0].roles: neither a manifest nor the fixtures have the role ghost"],
    },
    {
      name: "two keys of one name",
      text: "keys:\n  - name: one\n  - name: one",
      says: ["fixtures.yaml:3: keys[1].name: another key has the name one"],
    },
    {
      name: "a policy that there is not",
      text: "keys:\n  - name: one\n    policy: carts",
      says: ["fixtures.yaml:3: keys[0].policy: there is no ApiKeyPolicy carts; the manifests define shop/orders"],
    },
    {
      name: "more aliases than a person writes",
      text: `a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [${"*a,".repeat(9)}]\nc: &c [${"*b,".repeat(9)}]\nkeys: [${"*c,".repeat(9)}]`,
      says: [expect.stringContaining("alias")],
    },
  ])("simulate rejects fixtures and names the location: $name", async ({ text, says }) => {
    const as = file("fixtures.yaml", text);
    const ran = await run("-f", file("policy.yaml", policy("")), "--fixtures", as, "--request", "GET /");
    expect(ran).toMatchObject({ code: 1, out: [] });
    expect(ran.notes.map((line) => line.replace(`${dir}/`, ""))).toEqual(says);
  });

  test("simulate rejects cases with an unknown key, path or code", async () => {
    const ask = (text: string) => example("--cases", file("cases.yaml", text));
    const unknown = await ask("cases:\n  - name: a\n    request: GET /\n    key: ghost\n    expect: VALID");
    expect(unknown).toMatchObject({ code: 1, out: [] });
    expect(unknown.notes.join()).toMatch(/cases\.yaml:2: cases\[0\]\.steps\[0\]\.key: there is no key ghost/);
    const wrong = await ask("cases:\n  - name: a\n    request: /orders\n    expect: GOOD");
    expect(wrong).toMatchObject({ code: 1, out: [] });
  });

  test("simulate rejects invalid manifests like postern validate", async () => {
    const broken = file("broken.yaml", policy("  rules: [{ match: {}, permissions: a AND }]"));
    const ran = await run("-f", broken, "--request", "GET /", "--no-key");
    expect(ran).toMatchObject({ code: 1, out: [] });
    const validated: string[] = [];
    const io = { env: {}, out: (line: string) => void validated.push(line), note: () => undefined };
    await runCommand(COMMANDS, ["validate", "-f", broken], io);
    expect(ran.notes).toEqual(validated.slice(0, -1));
  });

  test("simulate rejects an override of a namespace without a manifest", async () => {
    const override = readFileSync(join(MANIFESTS, "override.yaml"), "utf8");
    const manifest = file("override.yaml", `${policy("")}\n---\n${override}`);
    const ran = await run("-f", manifest, "--request", "GET /", "--no-key");
    expect(ran.notes.join()).toContain("spec.namespaceRef: the manifests have no RatelimitNamespace shop/public-api");
  });
});

test.each([
  { args: [], says: "set --request or --cases" },
  { args: ["--request", "GET /", "--cases", CASES], says: "set --request or --cases" },
  { args: ["--request", "GET /"], says: "several keys match" },
  { args: ["--request", "orders", "--no-key"], says: "orders is not a method and a path" },
  { args: ["--request", "GET /", "--no-key", "--header", "no colon"], says: "for --header: must be" },
  { args: ["--request", "GET /", "--no-key", "--times", "0"], says: "for --times: must be" },
])("simulate command with $args is a usage error", async ({ args, says }) => {
  const ran = await example(...args);
  expect(ran).toMatchObject({ code: 2, out: [] });
  expect(ran.notes.join()).toContain(says);
});
