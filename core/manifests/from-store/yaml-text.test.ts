import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { anyText } from "../../../test/builders/text.ts";
import { importedFile, readImports } from "../../../test/imports.ts";
import type { CompiledPolicy } from "../../policies/policy.ts";
import { checkManifest, type Manifest, parseManifest } from "../check.ts";
import { compilePolicy, namespacesOf } from "../compile-policy.ts";
import type { StoredKey, StoredObject } from "./stored-object.ts";
import { snippetOf, yamlOf } from "./yaml-text.ts";

const documentsOf = (object: StoredObject): unknown[] =>
  parseAllDocuments(yamlOf(object)).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS();
  });

function manifestsIn(object: StoredObject): Manifest[] {
  return documentsOf(object).map((document) => {
    const parsed = parseManifest(document);
    if ("problems" in parsed) throw new Error(JSON.stringify(parsed.problems));
    return parsed.manifest;
  });
}

const ROLE = { kind: "Role", name: "editor", description: "Edits.", permissions: ["docs.read", "docs.*"] } as const;
const MANAGER = { cluster: "main", kind: "Role", namespace: "shop", name: "the-editor" };

test("exported role manifest contains only declared fields and adopts the stored role", () => {
  expect(yamlOf(ROLE)).toBe(`apiVersion: postern.dev/v1alpha1
kind: Role
metadata:
  name: editor
spec:
  name: editor
  description: Edits.
  permissions:
    - docs.read
    - docs.*
  adopt: Match
`);
});

test("exported manifest of a managed object keeps its name and namespace and does not adopt the object", () => {
  const [manifest] = manifestsIn({ ...ROLE, manager: MANAGER });
  expect(manifest).toMatchObject({ metadata: { name: "the-editor", namespace: "shop" } });
  expect(manifest?.spec).not.toHaveProperty("adopt");
  expect(yamlOf({ ...ROLE, manager: MANAGER })).toMatch(/^# A manifest already manages this object/);
});

describe("an override", () => {
  const namespace = { kind: "RatelimitNamespace", name: "email.outbound" } as const;
  const override = {
    kind: "RatelimitOverride",
    namespace,
    identifier: "premium_*",
    limit: 0,
    durationMs: 90_000,
    async: true,
  } as const;

  test("exported override includes the manifest of its namespace and references it by name", () => {
    const [first, second] = manifestsIn(override);
    expect(first).toMatchObject({ kind: "RatelimitNamespace", spec: { name: "email.outbound", adopt: "Match" } });
    expect(second).toMatchObject({
      kind: "RatelimitOverride",
      spec: {
        namespaceRef: { name: first?.metadata.name },
        identifier: "premium_*",
        limit: 0,
        duration: "1m30s",
        async: true,
      },
    });
  });

  test("exported override references the existing manifest of its namespace, with a note about the setting that the reference requires", () => {
    const manager = { cluster: "main", kind: "RatelimitNamespace", namespace: "mail", name: "outbound" };
    const managed = { ...override, namespace: { ...namespace, manager } };
    expect(manifestsIn(managed)).toHaveLength(1);
    expect(manifestsIn(managed)[0]?.spec).toMatchObject({ namespaceRef: { name: "outbound", namespace: "mail" } });
    expect(yamlOf(managed)).toContain("allowedNamespaces");
  });
});

const POLICY: CompiledPolicy = {
  formatVersion: 1,
  apiId: "api_12345678",
  mode: "Audit",
  credentials: [
    { in: "header", name: "Authorization", scheme: "Bearer" },
    { in: "header", name: "X-Key" },
    { in: "query", name: "key" },
  ],
  rules: [
    {
      methods: ["GET", "POST"],
      path: { prefix: "/orders" },
      access: "Key",
      permissions: "a AND (b OR c)",
      creditCost: 0,
      ratelimits: [
        {
          scope: { kind: "name", name: "writes" },
          identifier: "identity",
          limit: 0,
          durationMs: 61_500,
          cost: 3,
          accuracy: "local",
        },
        {
          scope: { kind: "namespace", namespaceId: "rlns_1" },
          identifier: "key",
          limit: 9,
          durationMs: 1000,
          cost: 1,
          accuracy: "strict",
        },
      ],
    },
    { path: { exact: "/health" }, access: "Anonymous", creditCost: 1, ratelimits: [] },
    { access: "Key", creditCost: 1, ratelimits: [] },
  ],
  onStale: { afterMs: 1000, action: "Deny", denyAfterMs: 1_800_000 },
  onCounterFailure: "Deny",
  onCreditFailure: "Allow",
  clientAddress: { from: "forwardedFor", trustedProxies: ["10.0.0.0/8"] },
  allowPaths: ["EncodedSlash", "Semicolon"],
};
const NAMESPACES = new Map([["rlns_1", "shared limits"]]);
const API = {
  kind: "ApiKeyPolicy",
  apiId: "api_12345678",
  apiName: "Orders (prod)",
  namespaceNames: NAMESPACES,
} as const;

test.each([
  { name: "all fields", policy: POLICY },
  { name: "a share for each pod", policy: { ...POLICY, onCounterFailure: "LocalShare" } satisfies CompiledPolicy },
  {
    name: "none but the needed ones",
    policy: {
      ...POLICY,
      mode: "Enforce",
      rules: [],
      onCounterFailure: "Local",
      onCreditFailure: "Deny",
      clientAddress: { from: "connection" },
      allowPaths: [],
    } satisfies CompiledPolicy,
  },
])("exported policy with $name compiles to the original policy", ({ policy }) => {
  const [manifest] = manifestsIn({ ...API, policy });
  if (manifest?.kind !== "ApiKeyPolicy") throw new Error("expected a policy");
  const namespaceIds = new Map(
    namespacesOf(manifest.spec).map((name) => [name, name === "shared limits" ? "rlns_1" : "?"]),
  );
  expect(compilePolicy(manifest.spec, { apiId: "api_12345678", namespaceIds })).toEqual(policy);
  expect(manifest.spec).toMatchObject({ api: { id: "api_12345678" }, adopt: "Match" });
});

const KEY: StoredKey = {
  kind: "ApiKey",
  apiId: "api_12345678",
  name: "Billing job",
  externalId: "acme",
  roles: ["editor"],
  permissions: ["docs.read"],
  ratelimits: [{ name: "requests", limit: 10, duration: 60_000, autoApply: true }],
  credits: { remaining: 5, refill: { interval: "monthly", amount: 9 } },
  expires: Date.UTC(2027, 0, 31),
};

test("exported key manifest states that it issues a different key", () => {
  expect(manifestsIn(KEY)[0]?.spec).toMatchObject({
    apiRef: { id: "api_12345678" },
    owner: "acme",
    expires: "2027-01-31T00:00:00.000Z",
    credits: { remaining: 5, refill: { interval: "Monthly", amount: 9, refillDay: 1 } },
  });
  expect(yamlOf(KEY)).toContain("# This manifest issues a new key");
});

test("exported manifest warns in a comment about values that the CRD rejects", () => {
  const text = yamlOf({ ...KEY, permissions: ["a"], name: "  " });
  expect(text).toContain("# Kubernetes would reject this manifest: spec.name ");
  expect(text).toContain("# Kubernetes would reject this manifest: spec.permissions[0] ");
  expect(yamlOf(KEY)).not.toContain("Kubernetes would reject");
});

test("exported manifest text round-trips any strings and escapes comments", () => {
  const texts = fc.oneof(
    anyText(),
    fc.constantFrom("a\n- b", "x\r\ny", "# no", "---", "~", "yes", "1e3", "0x1", "a\u2028b", "\ufeffa", "\u0085"),
  );
  const property = fc.property(texts, texts, texts, (name, description, identifier) => {
    for (const object of [
      { kind: "Role", name, description, permissions: [] },
      { ...KEY, name, roles: [identifier] },
      {
        kind: "RatelimitOverride",
        namespace: { kind: "RatelimitNamespace", name },
        identifier,
        limit: 1,
        durationMs: 1000,
        async: false,
      },
    ] satisfies StoredObject[]) {
      const text = yamlOf(object);
      const documents = documentsOf(object);
      // The text contains a warning exactly if the manifest is invalid.
      expect(text.includes("# Kubernetes would reject")).toBe(documents.some((one) => checkManifest(one).length > 0));
      expect(documents.map((one) => Object.keys(one as object))).toEqual(
        documents.map(() => ["apiVersion", "kind", "metadata", "spec"]),
      );
      const last = documents.at(-1) as { spec: Record<string, unknown> };
      if (object.kind === "Role") expect(last.spec).toMatchObject({ name, description });
      if (object.kind === "RatelimitOverride") expect(last.spec).toMatchObject({ identifier });
    }
  });
  fc.assert(property, { numRuns: 60 });
});

test("exporting a long text takes time linear in its length", () => {
  const description = `${"a".repeat(100_000)}!`;
  const startedMs = performance.now();
  expect(documentsOf({ ...ROLE, description })[0]).toMatchObject({ spec: { description } });
  expect(performance.now() - startedMs).toBeLessThan(5_000);
});

test("manifest snippet contains the field path and its value", () => {
  expect(snippetOf(["spec", "limit"], 5)).toBe("spec:\n  limit: 5\n");
  expect(snippetOf(["spec"], { duration: "1h30m" })).toBe("spec:\n  duration: 1h30m\n");
  expect(parse(snippetOf(["spec", "permissions"], ["a", "*"]))).toEqual({ spec: { permissions: ["a", "*"] } });
});

test("manifest export module loads in a browser without Node modules", () => {
  const seen = new Set<string>();
  const visit = (path: string): void => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const { specifier, typeOnly } of readImports(readFileSync(path, "utf8"))) {
      if (typeOnly) continue;
      expect(specifier, path).not.toMatch(/^node:/);
      const file = importedFile(path, specifier);
      if (file !== undefined) visit(file);
    }
  };
  visit("core/manifests/from-store/yaml-text.ts");
  visit("core/manifests/manager.ts");
  expect(seen.size).toBeGreaterThan(10);
});
