import { afterAll, beforeAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import type { StoredObject } from "../../core/manifests/from-store/stored-object.ts";
import { yamlOf } from "../../core/manifests/from-store/yaml-text.ts";
import { PolicyInput } from "../../core/policies/policy.ts";
import { conditionOf, type TestManifest } from "./operator-world.ts";
import { openReconcilerWorld, type ReconcilerWorld } from "./reconciler-world.ts";

/* Applying a manifest exported from a stored object: the operator manages the object from then on without changing it. */

let world: ReconcilerWorld;
beforeAll(async () => {
  world = await openReconcilerWorld();
});
afterAll(() => world?.close());

async function data<P extends Procedure>(procedure: P, body: Input<P>): Promise<Data<P>> {
  const response = await world.store.call(procedure, body);
  if (response.status !== 200) throw new Error(`${procedure}: ${JSON.stringify(response)}`);
  return response.data;
}
type ManagedKind = Input<"managed.getObject">["kind"];
const managerOf = async (kind: ManagedKind, id: string) => (await data("managed.getObject", { kind, id })).manager;

/** Applies the text in a Kubernetes namespace, reconciles until all objects are Ready and returns the manifests. */
async function apply(text: string, namespace: string): Promise<TestManifest[]> {
  const manifests = parseAllDocuments(text).map((document) => {
    const manifest = document.toJS();
    return { ...manifest, metadata: { namespace, ...manifest.metadata } } as TestManifest;
  });
  for (const manifest of manifests) await world.apply(manifest);
  for (let round = 0; round < 3; round += 1) for (const manifest of manifests) await world.work(manifest);
  for (const manifest of manifests) {
    const ready = conditionOf(world.statusIn(manifest), "Ready");
    expect(ready, `${manifest.kind}: ${ready?.message}`).toMatchObject({ status: "True" });
  }
  return manifests;
}

interface Case {
  readonly name: string;
  /** Creates the object and returns the export to apply. */
  readonly make: () => Promise<{ object: StoredObject; kind: ManagedKind; id: string; read: () => Promise<unknown> }>;
}

const HOUR_MS = 3_600_000;

const CASES: readonly Case[] = [
  {
    name: "a role",
    make: async () => {
      const permissions = ["docs.read", "docs.*", "Billing:pay"];
      const stored = { name: "Chef d’équipe", description: 'It\'s: "quoted"\n- and long', permissions };
      const { roleId } = await data("permissions.createRole", stored);
      return {
        object: { kind: "Role", ...stored },
        kind: "role",
        id: roleId,
        read: () => data("permissions.getRole", { role: roleId }),
      };
    },
  },
  {
    name: "an override with its namespace",
    make: async () => {
      const name = "email.Outbound 日本";
      const override = { identifier: "premium_*", limit: 7, async: true };
      const { namespaceId } = await data("ratelimit.createNamespace", { name });
      const body = { namespace: namespaceId, duration: HOUR_MS, ...override };
      const { overrideId } = await data("ratelimit.setOverride", body);
      return {
        object: {
          kind: "RatelimitOverride",
          namespace: { kind: "RatelimitNamespace", name },
          durationMs: HOUR_MS,
          ...override,
        },
        kind: "override",
        id: overrideId,
        read: async () => [
          await data("ratelimit.listOverrides", { namespace: namespaceId }),
          (await data("managed.getObject", { kind: "override", id: overrideId })).async,
        ],
      };
    },
  },
  {
    name: "an API",
    make: async () => {
      const { apiId } = await data("apis.createApi", { name: "Orders (prod)" });
      const key = await data("keys.createKey", { apiId, name: "a customer's" });
      return {
        object: { kind: "ApiKeyPolicy", apiId, apiName: "Orders (prod)" },
        kind: "api",
        id: apiId,
        read: async () => [await data("apis.getApi", { apiId }), (await data("keys.verifyKey", { key: key.key })).code],
      };
    },
  },
];

test.each(CASES)(
  "exported manifest of $name, when applied, takes over the object without changing it",
  async ({ make }) => {
    const { object, kind, id, read } = await make();
    const before = await read();
    expect(await managerOf(kind, id)).toBeUndefined();
    const manifests = await apply(yamlOf(object), "shop");
    expect(await read()).toEqual(before);
    const last = manifests.at(-1);
    expect(await managerOf(kind, id)).toBe(`test/${object.kind}/shop/${last?.metadata.name}`);
  },
);

test("exported policy of one namespace enforces the same rules in another namespace", async () => {
  const { apiId } = await data("apis.createApi", { name: "guarded" });
  const { namespaceId } = await data("ratelimit.createNamespace", { name: "guarded.calls" });
  const policy = PolicyInput.parse({
    formatVersion: 1,
    apiId,
    mode: "Audit",
    credentials: [{ in: "query", name: "key" }],
    rules: [
      {
        methods: ["POST"],
        path: { prefix: "/orders" },
        access: "Key",
        permissions: "a OR b",
        creditCost: 2,
        ratelimits: [
          {
            scope: { kind: "namespace", namespaceId },
            identifier: "identity",
            limit: 5,
            durationMs: HOUR_MS,
            cost: 2,
            accuracy: "local",
          },
        ],
      },
    ],
    onStale: { afterMs: 10_000, action: "Deny", denyAfterMs: 20_000 },
    onCounterFailure: "Allow",
    onCreditFailure: "Allow",
    allowPaths: ["DoubleSlash"],
  });
  const namespaceNames = new Map([[namespaceId as string, "guarded.calls"]]);
  await apply(yamlOf({ kind: "RatelimitNamespace", name: "guarded.calls" }), "shop");
  const text = yamlOf({ kind: "ApiKeyPolicy", apiId, apiName: "guarded", policy, namespaceNames });
  const [manifest] = await apply(text, "shop");
  const named = { apiId, name: `test/shop/${manifest?.metadata.name}` };
  expect((await data("policies.getPolicy", named)).policy).toEqual(policy);
});

test("object changed after its export is not adopted", async () => {
  const { roleId } = await data("permissions.createRole", { name: "moving", permissions: ["docs.read"] });
  const text = yamlOf({ kind: "Role", name: "moving", permissions: ["docs.read"] });
  await data("permissions.setRolePermissions", { roleId, permissions: ["docs.write"] });
  await expect(apply(text, "shop")).rejects.toThrow("differs from this spec");
  expect(await managerOf("role", roleId)).toBeUndefined();
});
