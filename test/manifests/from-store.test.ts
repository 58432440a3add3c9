import { beforeAll, expect, test } from "vitest";
import type { StoredObject } from "../../core/manifests/from-store/stored-object.ts";
import { yamlOf } from "../../core/manifests/from-store/yaml-text.ts";
import { PolicyInput } from "../../core/policies/policy.ts";
import { applyCrds, resourceOf } from "../e2e/operator-world.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
} from "../harness/kubernetes.ts";

/* What is written from the store is what kubectl reads, and what a real API server accepts by the CRDs. */

let kubernetes: TestKubernetes;
let namespace: string;
beforeAll(async () => {
  kubernetes = await startKubernetes();
  await applyCrds(kubernetes);
  namespace = (await createTestNamespace(kubernetes)).name;
}, KUBERNETES_START_MS);

/** Each is a text for the API; another YAML than ours might read something else in it. */
const TEXTS = [
  "yes",
  "Off",
  "y",
  "~",
  "null",
  "0o17",
  "0x1F",
  "1e3",
  "1_000",
  "1:30",
  "12:30:45",
  ".inf",
  "2027-01-31",
  "---",
  "a: b",
  "a #b",
  "#a",
  "- a",
  "*a",
  "&a",
  "!!int 7",
  "{{ x }}",
  "'a'",
  '"a"',
  "a\nb",
  " a ",
  "a\tb",
  "a\u2028b",
  "\u202Ea",
  "日本",
  "<<",
  "=",
  "%a",
  "@a",
  "`a`",
  "a\\b",
];

test.each(TEXTS)("kubectl reads exported text %j unchanged", async (text) => {
  const objects: StoredObject[] = [
    { kind: "Role", name: text, description: text, permissions: [] },
    {
      kind: "RatelimitOverride",
      namespace: { kind: "RatelimitNamespace", name: text },
      identifier: text,
      limit: 1,
      durationMs: 1000,
      async: false,
    },
  ];
  const yaml = objects.map(yamlOf).join("---\n");
  const args = ["apply", "-n", namespace, "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-"];
  const { exitCode, stdout, stderr } = await kubernetes.kubectl(args, yaml);
  expect(exitCode, `${stderr}\n${yaml}`).toBe(0);
  const { items } = JSON.parse(stdout) as { items: { kind: string; spec: Record<string, unknown> }[] };
  expect(items.map(({ kind }) => resourceOf(kind))).toEqual(
    ["Role", "RatelimitNamespace", "RatelimitOverride"].map(resourceOf),
  );
  expect(items.map(({ spec }) => spec.name ?? spec.identifier)).toEqual([text, text, text]);
  expect(items[0]?.spec.description).toBe(text);
});

test("exported policy and key with all fields are accepted by Kubernetes", async () => {
  const limit = { limit: 5, durationMs: 61_500, cost: 2, identifier: "key" } as const;
  const yaml = [
    yamlOf({
      kind: "ApiKeyPolicy",
      apiId: "api_12345678",
      apiName: "Orders",
      namespaceNames: new Map([["rlns_1", "yes"]]),
      policy: PolicyInput.parse({
        formatVersion: 1,
        apiId: "api_12345678",
        mode: "Audit",
        credentials: [
          { in: "header", name: "Authorization", scheme: "Bearer" },
          { in: "query", name: "key" },
        ],
        rules: [
          {
            methods: ["POST"],
            path: { prefix: "/orders" },
            access: "Key",
            permissions: "a AND (b OR c)",
            creditCost: 0,
            ratelimits: [
              { ...limit, scope: { kind: "namespace", namespaceId: "rlns_1" }, accuracy: "local" },
              { ...limit, scope: { kind: "name", name: "no" }, accuracy: "strict" },
            ],
          },
          { path: { exact: "/health" }, access: "Anonymous", creditCost: 1, ratelimits: [] },
        ],
        onStale: { afterMs: 1000, action: "Deny", denyAfterMs: 2000 },
        onCounterFailure: "Deny",
        onCreditFailure: "Allow",
        clientAddress: { from: "forwardedFor", trustedProxies: ["10.0.0.0/8", "::1"] },
        allowPaths: ["EncodedSlash"],
      }),
    }),
    yamlOf({
      kind: "ApiKey",
      apiId: "api_12345678",
      name: "on",
      externalId: "007",
      roles: ["no"],
      permissions: ["1e3"],
      ratelimits: [{ name: "off", limit: 1, duration: 1000, autoApply: true }],
      credits: { remaining: 0, refill: { interval: "monthly", amount: 1, refillDay: 31 } },
      expires: Date.UTC(2027, 0, 31),
    }),
  ].join("---\n");
  const args = ["apply", "-n", namespace, "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"];
  const { exitCode, stdout, stderr } = await kubernetes.kubectl(args, yaml);
  expect(exitCode, `${stderr}\n${yaml}`).toBe(0);
  expect(stdout.trim().split("\n")).toHaveLength(2);
});
