import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { KINDS, type Kind } from "../../core/manifests/index.ts";
import { conditionOf, type Status, type TestManifest } from "./operator-world.ts";
import { labelOf, type Name, openReconcilerWorld, type ReconcilerWorld } from "./reconciler-world.ts";

/*
 * A user with all permissions in namespace dev and none in prod uses every way in which one object can name another. The user can write any
 * spec, annotation and status, although a status is no input. Nothing of prod may change or stop working.
 *
 * Each round uses its own names; the api-server and the source are shared.
 */

let world: ReconcilerWorld;
beforeAll(async () => {
  world = await openReconcilerWorld();
});
afterAll(() => world?.close());

const objectOf = (one: Name) => world.objectOf(one);
const statusIn = (one: Name) => world.statusIn(one);
const apply = (one: TestManifest) => world.apply(one);
const remove = (one: Name) => world.remove(one);
const reconcile = (one: Name) => world.reconcile(one);

const readyOf = (status: Status) => conditionOf(status, "Ready");

async function applied(one: TestManifest): Promise<Status> {
  await apply(one);
  return await reconcile(one);
}

const manifest = (
  kind: Kind,
  namespace: "prod" | "dev",
  name: string,
  spec: Record<string, unknown>,
  annotations?: Record<string, string>,
): TestManifest => ({
  kind,
  metadata: { name, namespace, ...(annotations === undefined ? {} : { annotations }) },
  spec,
});

let rounds = 0;

/** Objects of prod: one of each kind with everything that could be named. */
interface Prod {
  readonly suffix: string;
  readonly objects: readonly TestManifest[];
  /** Ids in the statuses of prod, which the forged statuses in dev repeat. */
  readonly ids: Readonly<Record<string, unknown>>;
  /** Returns all stored data of prod. */
  read(): Promise<unknown>;
}

async function openProd(): Promise<Prod> {
  const suffix = `r${++rounds}`;
  const role = manifest("Role", "prod", `role-${suffix}`, { name: `role-${suffix}`, permissions: [`p.${suffix}`] });
  const namespace = manifest("RatelimitNamespace", "prod", `limits-${suffix}`, { name: `limits-${suffix}` });
  const override = manifest("RatelimitOverride", "prod", `override-${suffix}`, {
    namespaceRef: { name: namespace.metadata.name },
    identifier: "acme",
    limit: 5,
    duration: "1h",
  });
  const policy = manifest("ApiKeyPolicy", "prod", `policy-${suffix}`, {
    api: { name: `api-${suffix}` },
    target: { port: 80 },
    rules: [{ ratelimits: [{ namespace: `limits-${suffix}`, identifier: "Key", limit: 1, duration: "60s" }] }],
  });
  const objects = [role, namespace, override, policy];
  for (const one of objects) expect(readyOf(await applied(one)), labelOf(one)).toMatchObject({ status: "True" });
  const ids: Record<string, unknown> = {};
  for (const one of objects) {
    const { conditions: _, observedGeneration: __, ...own } = statusIn(one);
    Object.assign(ids, own);
  }
  const { roleId, namespaceId, policyId, apiId } = ids;
  const read = async () => {
    const calls: Array<[string, object]> = [
      ["permissions.getRole", { role: roleId }],
      ["ratelimit.getNamespace", { namespace: namespaceId }],
      ["ratelimit.listOverrides", { namespace: namespaceId }],
      ["policies.getPolicy", { policyId }],
      ["policies.listPolicies", { apiId }],
      ["apis.getApi", { apiId }],
      ["managed.getObject", { kind: "role", id: roleId }],
      ["managed.getObject", { kind: "namespace", id: namespaceId }],
      ["managed.getObject", { kind: "override", id: ids.overrideId }],
      ["managed.getObject", { kind: "api", id: apiId }],
      ["managed.getObject", { kind: "policy", id: policyId }],
    ];
    return await Promise.all(
      calls.map(async ([procedure, body]) => [procedure, await world.store.call(procedure, body)]),
    );
  };
  return { suffix, objects, ids, read };
}

/** Writes a status that is true only for prod: all its ids, and Ready at the current generation. */
async function forgeStatus(one: Name, { ids }: Prod): Promise<void> {
  const object = objectOf(one);
  if (object === undefined) return;
  const observedGeneration = object.metadata.generation;
  const condition = { type: "Ready", status: "True", reason: "Succeeded", message: "", observedGeneration };
  const lastTransitionTime = "2026-01-01T00:00:00Z";
  await world.source.updateStatus(object, {
    ...ids,
    observedGeneration,
    conditions: [{ ...condition, lastTransitionTime }],
  });
}

/** Annotations that careless code might read as the manager of the object. */
const forgedAnnotations = ({ objects, ids }: Prod, kind: Kind): Record<string, string> => {
  const rightful = objects.find((one) => one.kind === kind) ?? objects[0];
  const manager = `test/${kind}/prod/${rightful?.metadata.name}`;
  return {
    "postern.dev/manager": manager,
    "postern.dev/managed-by": manager,
    "postern.dev/namespace": "prod",
    "postern.dev/workspace": "ws_other",
    "postern.dev/id": String(ids.namespaceId),
    "postern.dev/adopt": "override",
    "postern.dev/allowed-namespaces": "dev",
  };
};

interface Scenario {
  /** Manifests written by dev, in order. Each gets every forgery. */
  readonly dev: (prod: Prod) => readonly TestManifest[];
  /** Reason in the last status; `undefined` if dev correctly gets its own object. */
  readonly reason: "NotAllowed" | "Conflict" | "DependencyNotReady" | undefined;
}

const devNamespace = (name: string, storeName = name) =>
  manifest("RatelimitNamespace", "dev", name, { name: storeName, deletionPolicy: "Delete" });
const devOverride = (name: string, namespaceRef: object, identifier = "*") =>
  manifest("RatelimitOverride", "dev", name, { namespaceRef, identifier, limit: 0, duration: "1h" });
const devKey = (name: string, spec: Record<string, unknown>) =>
  manifest("ApiKey", "dev", name, { secretRef: { name: `secret-of-${name}` }, ...spec });
const devPolicy = (name: string, spec: Record<string, unknown>) =>
  manifest("ApiKeyPolicy", "dev", name, { target: { port: 80 }, deletionPolicy: "Delete", ...spec });

/** Every spec field that names another object. */
const REFERENCES: Readonly<Record<string, Readonly<Record<string, Scenario>>>> = {
  "RatelimitOverride namespaceRef.name": {
    "its own namespace, which passes itself off as prod's": {
      dev: ({ suffix }) => [devNamespace(`mine-${suffix}`), devOverride(`mine-${suffix}`, { name: `mine-${suffix}` })],
      reason: undefined,
    },
    "its own namespace, which claims the name of prod's and has nothing in the store": {
      dev: ({ suffix }) => [
        devNamespace(`same-${suffix}`, `limits-${suffix}`),
        devOverride(`same-${suffix}`, { name: `same-${suffix}` }),
      ],
      reason: "DependencyNotReady",
    },
  },
  "RatelimitOverride namespaceRef.namespace": {
    "prod's namespace, which does not allow it": {
      dev: ({ suffix }) => [devOverride(`far-${suffix}`, { name: `limits-${suffix}`, namespace: "prod" })],
      reason: "NotAllowed",
    },
  },
  "RatelimitOverride identifier": {
    "the identifier of prod's override": {
      dev: ({ suffix }) => [devOverride(`taken-${suffix}`, { name: `limits-${suffix}`, namespace: "prod" }, "acme")],
      reason: "NotAllowed",
    },
  },
  "RatelimitNamespace name": {
    "the name of prod's namespace": {
      dev: ({ suffix }) => [devNamespace(`claim-${suffix}`, `limits-${suffix}`)],
      reason: "Conflict",
    },
    "the id of prod's namespace": {
      dev: ({ suffix, ids }) => [devNamespace(`by-id-${suffix}`, String(ids.namespaceId))],
      reason: undefined,
    },
  },
  "Role name": {
    "the name of prod's role": {
      dev: ({ suffix }) => [
        manifest("Role", "dev", `claim-${suffix}`, { name: `role-${suffix}`, permissions: ["*"], adopt: "Override" }),
      ],
      reason: "Conflict",
    },
    "the id of prod's role": {
      dev: ({ suffix, ids }) => [manifest("Role", "dev", `by-id-${suffix}`, { name: ids.roleId, permissions: ["*"] })],
      reason: undefined,
    },
  },
  "Role permissions[]": {
    "the permissions of prod's role, which are words of the workspace": {
      dev: ({ suffix }) => [
        manifest("Role", "dev", `words-${suffix}`, { name: `words-${suffix}`, permissions: [`p.${suffix}`] }),
      ],
      reason: undefined,
    },
  },
  "ApiKey policyRef.name": {
    "its own policy, which passes itself off as prod's": {
      dev: ({ suffix }) => [
        devPolicy(`of-key-${suffix}`, { api: { name: `api-${suffix}` } }),
        devKey(`own-${suffix}`, { policyRef: { name: `of-key-${suffix}` } }),
      ],
      reason: undefined,
    },
  },
  "ApiKey policyRef.namespace": {
    "prod's policy, which does not allow it": {
      dev: ({ suffix }) => [devKey(`far-${suffix}`, { policyRef: { name: `policy-${suffix}`, namespace: "prod" } })],
      reason: "NotAllowed",
    },
  },
  "ApiKey apiRef.id": {
    "prod's API, which does not allow it": {
      dev: ({ suffix, ids }) => [devKey(`by-id-${suffix}`, { apiRef: { id: ids.apiId } })],
      reason: "NotAllowed",
    },
  },
  "ApiKeyPolicy api.name": {
    "the name of prod's API, which makes another API": {
      dev: ({ suffix }) => [devPolicy(`named-${suffix}`, { api: { name: `api-${suffix}` } })],
      reason: undefined,
    },
  },
  "ApiKeyPolicy api.id": {
    "prod's API, which does not allow it": {
      dev: ({ suffix, ids }) => [devPolicy(`foreign-${suffix}`, { api: { id: ids.apiId } })],
      reason: "NotAllowed",
    },
  },
  "ApiKeyPolicy rules[].ratelimits[].namespace": {
    "prod's namespace, which does not allow it": {
      dev: ({ suffix }) => [
        devPolicy(`limited-${suffix}`, {
          api: { name: `limited-${suffix}` },
          rules: [{ ratelimits: [{ namespace: `limits-${suffix}`, identifier: "Key", limit: 1, duration: "60s" }] }],
        }),
      ],
      reason: "NotAllowed",
    },
    "prod's namespace, with an object of its own that claims the same name": {
      dev: ({ suffix }) => [
        devNamespace(`double-${suffix}`, `limits-${suffix}`),
        devPolicy(`double-${suffix}`, {
          api: { name: `double-${suffix}` },
          rules: [{ ratelimits: [{ namespace: `limits-${suffix}`, identifier: "Key", limit: 1, duration: "60s" }] }],
        }),
      ],
      reason: "NotAllowed",
    },
  },
};

/** Spec texts that name nothing outside the object. */
const PLAIN: ReadonlySet<string> = new Set([
  ...["Role description", "ApiKey owner", "ApiKey name", "ApiKey permissions[]", "ApiKey expires"],
  ...["ApiKey ratelimits[].name", "ApiKey ratelimits[].duration", "ApiKey rotation.every", "ApiKey rotation.overlap"],
  // Names in the namespace of the object; api-key.test.ts tests that foreign Secrets are left alone. Role names are shared.
  ...["ApiKey secretRef.name", "ApiKey secretRef.key", "ApiKey roles[]"],
  ...["RatelimitOverride duration", "RatelimitNamespace allowedNamespaces[]", "ApiKeyPolicy allowedNamespaces[]"],
  // Pods are searched only in the namespace of the policy.
  ...["ApiKeyPolicy selector.matchLabels.*", "ApiKeyPolicy target.port"],
  ...["ApiKeyPolicy credentials[].header.name", "ApiKeyPolicy credentials[].header.scheme"],
  ...["ApiKeyPolicy credentials[].query.name", "ApiKeyPolicy onStale.after", "ApiKeyPolicy onStale.denyAfter"],
  ...["ApiKeyPolicy clientAddress.trustedProxies[]", "ApiKeyPolicy rules[].permissions"],
  ...["ApiKeyPolicy rules[].match.path.prefix", "ApiKeyPolicy rules[].match.path.exact"],
  ...["ApiKeyPolicy rules[].name", "ApiKeyPolicy rules[].match.path.template", "ApiKeyPolicy rules[].match.hosts[]"],
  ...["ApiKeyPolicy rules[].match.headers[].name", "ApiKeyPolicy rules[].match.headers[].exact"],
  ...["ApiKeyPolicy rules[].ratelimits[].by[]", "ApiKeyPolicy failedAttempts.duration"],
  ...["ApiKeyPolicy rules[].ratelimits[].name", "ApiKeyPolicy rules[].ratelimits[].duration"],
  ...["ApiKeyPolicy onCounterFailure.action", "ApiKeyPolicy onCounterFailure.budget"],
]);

interface JsonSchema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
}

/** Returns the paths of all texts in a spec, such as `rules[].ratelimits[].namespace`. */
function textsOf(schema: JsonSchema, at = ""): string[] {
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (alternatives !== undefined) return alternatives.flatMap((one) => textsOf(one, at));
  const member = (name: string) => (at === "" ? name : `${at}.${name}`);
  const { properties = {}, additionalProperties, items } = schema;
  return [
    ...Object.entries(properties).flatMap(([name, one]) => textsOf(one, member(name))),
    ...(typeof additionalProperties === "object" ? textsOf(additionalProperties, member("*")) : []),
    ...(items === undefined ? [] : textsOf(items, `${at}[]`)),
    ...(schema.type === "string" && schema.enum === undefined ? [at] : []),
  ];
}

const texts = new Set(
  KINDS.flatMap(({ kind, specSchema }) =>
    textsOf(z.toJSONSchema(specSchema, { io: "input", unrepresentable: "any" }) as JsonSchema).map(
      (path) => `${kind} ${path}`,
    ),
  ),
);

test("every text field of a spec is classified as reference or plain text", () => {
  const judged = [...Object.keys(REFERENCES), ...PLAIN];
  expect([...texts].filter((one) => !judged.includes(one))).toEqual([]);
  expect(judged.filter((one) => !texts.has(one))).toEqual([]);
});

const cases = Object.entries(REFERENCES).flatMap(([reference, scenarios]) =>
  Object.entries(scenarios).map(([title, scenario]) => ({ reference, title, ...scenario })),
);

describe.each(cases)("$reference: $title", ({ dev, reason }) => {
  async function attack(prod: Prod, forge: { status: boolean; annotations: boolean }): Promise<TestManifest[]> {
    const objects = dev(prod).map((one) =>
      forge.annotations
        ? manifest(one.kind as Kind, "dev", one.metadata.name, one.spec, forgedAnnotations(prod, one.kind as Kind))
        : one,
    );
    for (const one of objects) await apply(one);
    // Several rounds, so that effects on one object reach the next; the forgery is repeated in each.
    for (let round = 0; round < 3; round++) {
      for (const one of objects) {
        if (forge.status) for (const each of objects) await forgeStatus(each, prod);
        await reconcile(one);
      }
    }
    return objects;
  }

  test.each([
    { name: "a spec alone", forge: { status: false, annotations: false } },
    { name: "a forged status", forge: { status: true, annotations: false } },
    { name: "forged annotations", forge: { status: false, annotations: true } },
  ])("reference through $name gives no access to prod", async ({ forge }) => {
    const prod = await openProd();
    const before = await prod.read();
    const objects = await attack(prod, forge);
    expect(await prod.read()).toEqual(before);
    const last = objects.at(-1) as TestManifest;
    const status = await reconcile(last);
    if (reason === undefined) expect(readyOf(status)).toMatchObject({ status: "True" });
    else expect(readyOf(status)).toMatchObject({ status: "False", reason });
    // Its own ids or none: forged ids are replaced.
    for (const id of ["roleId", "overrideId", "policyId"]) expect(status[id]).not.toBe(prod.ids[id]);
    for (const one of prod.objects) {
      expect(readyOf(await reconcile(one)), labelOf(one)).toMatchObject({ status: "True" });
    }

    for (const one of objects.toReversed()) {
      await remove(one);
      if (forge.status) await forgeStatus(one, prod);
      await reconcile(one);
      expect(objectOf(one), `${labelOf(one)} is let go`).toBeUndefined();
    }
    expect(await prod.read()).toEqual(before);
  });
});

test("forbidden override does not block a permitted newer one", async () => {
  const prod = await openProd();
  const ref = { name: `limits-${prod.suffix}`, namespace: "prod" };
  const squatter = devOverride(`older-${prod.suffix}`, ref, "wanted");
  expect(readyOf(await applied(squatter))).toMatchObject({ reason: "NotAllowed" });
  const rightful = manifest("RatelimitOverride", "prod", `younger-${prod.suffix}`, {
    namespaceRef: { name: ref.name },
    identifier: "wanted",
    limit: 9,
    duration: "1h",
  });
  expect(readyOf(await applied(rightful))).toMatchObject({ status: "True" });
});

test("object whose status was lost finds its stored data, which is deleted together with the object", async () => {
  const prod = await openProd();
  for (const one of prod.objects) {
    const object = objectOf(one);
    if (object !== undefined) await world.source.updateStatus(object, {});
  }
  for (const one of prod.objects) expect(readyOf(await reconcile(one))).toMatchObject({ status: "True" });
  const [role, namespace, override] = prod.objects as [TestManifest, TestManifest, TestManifest];
  for (const one of [override, namespace, role]) {
    const object = objectOf(one);
    if (object !== undefined) await world.source.updateStatus(object, {});
    await remove(one);
    await reconcile(one);
    expect(objectOf(one)).toBeUndefined();
  }
  expect(await world.store.call("permissions.getRole", { role: prod.ids.roleId })).toMatchObject({ status: 404 });
  expect(await world.store.call("ratelimit.getNamespace", { namespace: prod.ids.namespaceId })).toMatchObject({
    status: 404,
  });
});

test("conflicting object is checked at increasing intervals", async () => {
  await applied(manifest("Role", "prod", "elder", { name: "contested", permissions: [] }));
  const younger = manifest("Role", "dev", "younger", { name: "contested", permissions: [] });
  expect(readyOf(await applied(younger))).toMatchObject({ reason: "Conflict" });
  const after = async (ms: number) => {
    const { requeueAfterMs } = await world.work(younger, { ...world.ctx, nowMs: () => Date.now() + ms });
    return Math.round((requeueAfterMs ?? 0) / 1_000);
  };
  expect(await after(0)).toBe(30);
  expect(await after(200_000)).toBe(30);
  const later = await after(3_600_000);
  expect(later).toBeGreaterThanOrEqual(360);
  expect(later).toBeLessThan(400);
});
