import { expect, test } from "vitest";
import { validatePolicy } from "./validate.ts";

const request = (spec: object, kind = "ApiKeyPolicy") => ({
  uid: "u",
  kind: { group: "postern.dev", version: "v1alpha1", kind },
  namespace: "shop",
  operation: "CREATE",
  object: {
    apiVersion: "postern.dev/v1alpha1",
    kind,
    // Metadata as sent by the API server.
    metadata: { name: "orders", namespace: "shop", uid: "u", managedFields: [{}], creationTimestamp: null },
    spec: { api: { name: "orders" }, target: { port: "http" }, ...spec },
  },
});

test("webhook rejects invalid permission queries with up to five locations", () => {
  const rules = [{ permissions: "a AND b" }, ...Array.from({ length: 7 }, () => ({ permissions: "a AND" }))];
  const admission = validatePolicy(request({ rules }));
  expect(admission).toMatchObject({ allowed: false });
  const { message } = admission as { message: string };
  expect(message).toMatch(/^spec\.rules\[1\]\.permissions: /);
  expect(message).toContain("(and 2 more)");
});

test("webhook validation accepts fields that the CRD schema already checks", () => {
  for (const spec of [{ rules: [{ permissions: "a OR b" }] }, { ofALaterRelease: 1 }, { rules: "none" }]) {
    expect(validatePolicy(request(spec))).toEqual({ allowed: true });
  }
  expect(validatePolicy(request({ rules: [{ permissions: "a AND" }] }, "Role"))).toEqual({ allowed: true });
});

test("webhook warns about shadowed rules and unguarded methods, and accepts the policy", () => {
  const writes = { match: { methods: ["POST"], path: { prefix: "/orders" } }, permissions: "a" };
  expect(validatePolicy(request({ rules: [writes, writes] }))).toEqual({
    allowed: true,
    warnings: [
      expect.stringMatching(/^spec\.rules\[0\]: on its path, no rule matches GET/),
      expect.stringMatching(/^spec\.rules\[1\]: no request reaches this rule/),
    ],
  });
  expect(validatePolicy(request({ rules: [writes], defaultAccess: "Deny" }))).toEqual({ allowed: true });
});

// The API server limits neither labels nor fields of a newer CRD, and any client of the cluster can send them.
test("webhook validates a 4 MB object within two seconds", () => {
  const many = (count: number, name: (i: number) => string) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [name(i), "x"]));
  const { object, ...rest } = request({ rules: [{ permissions: "a AND" }] });
  const hostile = [
    { ...object, metadata: { ...object.metadata, labels: many(200_000, (i) => `a/a/a/${i}`) } },
    { ...object, spec: { ...object.spec, ...many(300_000, (i) => `k${i}`) } },
    { ...object, spec: { rules: Array.from({ length: 100_000 }, () => ({ match: { path: { prefix: "/%" } } })) } },
  ];
  for (const [i, one] of hostile.entries()) {
    const startMs = performance.now();
    expect(validatePolicy({ ...rest, object: one })).toMatchObject({ allowed: i === 2 });
    expect(performance.now() - startMs).toBeLessThan(2_000);
  }
});
