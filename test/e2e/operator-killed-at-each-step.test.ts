import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Kind } from "../../core/manifests/index.ts";
import type { ApiClient } from "../../operator/api/client.ts";
import type { OperatorContext } from "../../operator/reconcilers/context.ts";
import { waitFor } from "../harness/wait.ts";
import { conditionOf, type TestManifest } from "./operator-world.ts";
import { oneWorkspace, openReconcilerWorld, type ReconcilerWorld } from "./reconciler-world.ts";

/*
 * Kills an operator at each write to the API and to the object, for each kind: once before the write and once after it. Another operator
 * continues. api-key.test.ts covers ApiKey rotation.
 */

let world: ReconcilerWorld;
beforeAll(async () => {
  world = await openReconcilerWorld();
  for (const one of BASE) {
    await world.apply(one);
    await settle(one);
  }
});
afterAll(() => world?.close());

const namespace = "shop";
const aManifest = (kind: Kind, name: string, spec: Record<string, unknown>): TestManifest => ({
  kind,
  metadata: { name, namespace },
  spec,
});
/** Referenced objects. */
const BASE = [
  aManifest("RatelimitNamespace", "base", { name: "base" }),
  aManifest("ApiKeyPolicy", "base", { api: { name: "base" }, target: { port: 80 } }),
];

interface Case {
  readonly kind: Kind;
  readonly spec: (name: string) => Record<string, unknown>;
  /** Changes of the first spec; omitted if the kind is immutable. */
  readonly change?: Record<string, unknown>;
  /** SQL that counts its live stored objects. */
  readonly count: string;
  /** SQL that returns whether `change` is stored. */
  readonly changed?: string;
  /** Remaining objects by deletion policy. */
  readonly left?: number;
}

/** `$1` is the name of the object in the database and in its cluster. */
const CASES: readonly Case[] = [
  {
    kind: "Role",
    spec: (name) => ({ name, description: "Edits.", permissions: ["orders.read"] }),
    change: { description: "Writes.", permissions: ["orders.read", "orders.write"] },
    count: "select count(*) from roles where name = $1",
    changed: `select count(*) from roles where name = $1 and description = 'Writes.'
                 and (select count(*) from role_permissions where role_id = roles.id) = 2`,
  },
  {
    kind: "RatelimitNamespace",
    spec: (name) => ({ name }),
    count: "select count(*) from ratelimit_namespaces where name = $1 and deleted_at is null",
  },
  {
    kind: "RatelimitOverride",
    spec: (name) => ({ namespaceRef: { name: "base" }, identifier: name, limit: 5, duration: "1m" }),
    change: { limit: 6 },
    count: "select count(*) from ratelimit_overrides where identifier = $1 and deleted_at is null",
    changed: "select count(*) from ratelimit_overrides where identifier = $1 and max_count = 6 and deleted_at is null",
  },
  {
    kind: "ApiKeyPolicy",
    spec: (name) => ({ api: { name }, target: { port: 80 } }),
    change: { mode: "Audit" },
    count: `select (select count(*) from apis where name = $1 and deleted_at is null)
                 + (select count(*) from policies where name = 'test/shop/' || $1 and deleted_at is null) - 1 as count`,
    changed:
      "select count(*) from policies where name = 'test/shop/' || $1 and policy->>'mode' = 'Audit' and deleted_at is null",
    // The count is that of API and policy minus one, so the remaining API alone gives 0.
    left: 0,
  },
  {
    kind: "ApiKey",
    spec: (name) => ({ policyRef: { name: "base" }, secretRef: { name: `${name}-key` } }),
    change: { owner: "acme" },
    count: "select count(*) from keys where manager = 'test/ApiKey/shop/' || $1 and deleted_at is null",
    changed: `select count(*) from keys join identities on identities.id = keys.identity_id
               where keys.manager = 'test/ApiKey/shop/' || $1 and keys.deleted_at is null and identities.external_id = 'acme'`,
  },
];

class Killed extends Error {}

/** Returns an operator that crashes at its nth write; `writes` lists the earlier ones. */
function killedAt(nth: number, when: "before" | "after"): { ctx: OperatorContext; writes: string[] } {
  const writes: string[] = [];
  const write = async <T>(name: string, go: () => Promise<T>): Promise<T> => {
    if (when === "before" && writes.length + 1 === nth) throw new Killed();
    const response = await go();
    writes.push(name);
    if (writes.length === nth) throw new Killed();
    return response;
  };
  const isRead = (procedure: string) => /\.(get|find|list)/.test(procedure);
  const real = world.api.call as (...all: unknown[]) => Promise<unknown>;
  const api = {
    call: (procedure: string, ...rest: unknown[]) => {
      const go = () => real(procedure, ...rest);
      return isRead(procedure) ? go() : write(procedure, go);
    },
  } as ApiClient;
  const { source } = world.ctx;
  const { secrets } = source;
  return {
    writes,
    ctx: {
      ...world.ctx,
      workspaces: oneWorkspace(api),
      source: {
        ...source,
        updateStatus: (...all) => write("status", () => source.updateStatus(...all)),
        setFinalizers: (...all) => write("finalizers", () => source.setFinalizers(...all)),
        secrets: {
          ...secrets,
          write: (...all) => write("secret", () => secrets.write(...all)),
          remove: (...all) => write("no secret", () => secrets.remove(...all)),
        },
      },
    },
  };
}

const isAccepted = (one: TestManifest): boolean => {
  const status = world.statusIn(one);
  const { generation } = world.objectOf(one)?.metadata ?? {};
  const found = conditionOf(status, "Accepted") ?? conditionOf(status, "Ready");
  return found?.status === "True" && status.observedGeneration === generation;
};
/** Reconciles with the next operator as often as its queue would. */
const settle = (one: TestManifest) =>
  waitFor(`${one.kind} ${one.metadata.name} to be as written`, async () => {
    await world.reconcile(one);
    return isAccepted(one);
  });
const untilDisconnected = (one: TestManifest) =>
  waitFor(`${one.kind} ${one.metadata.name} to be gone`, async () => {
    await world.reconcile(one);
    return world.objectOf(one) === undefined;
  });

async function count(text: string, name: string): Promise<number> {
  const { rows } = await world.store.server.deps.db.query<{ count: number }>(text, [name]);
  return Number(rows[0]?.count);
}

let made = 0;

/** Crashes at the first write, the second, and so on, each time with a new object, until one completes. Returns the number of writes. */
async function killAtEach(
  when: "before" | "after",
  { kind, spec }: Case,
  parts: {
    readonly before?: (one: TestManifest) => Promise<void>;
    readonly begin: (one: TestManifest) => Promise<TestManifest>;
    readonly end: (one: TestManifest, at: string) => Promise<void>;
  },
): Promise<number> {
  for (let nth = 1; ; nth++) {
    const name = `k${++made}`;
    const first = aManifest(kind, name, spec(name));
    await parts.before?.(first);
    const one = await parts.begin(first);
    const { ctx, writes } = killedAt(nth, when);
    const outcome = await world.work(one, ctx).catch((error: unknown) => error);
    await parts.end(one, `${when} write ${nth}, after ${writes.join(", ")}`);
    if (!(outcome instanceof Killed)) return nth - 1;
    if (nth > 20) throw new Error("it does not end");
  }
}

describe.each(CASES)("of a $kind", (one) => {
  const { change, changed } = one;
  const apply = async (manifest: TestManifest) => {
    await world.apply(manifest);
    return manifest;
  };
  const make = async (manifest: TestManifest) => {
    await world.apply(manifest);
    await settle(manifest);
  };

  test.each(["before", "after"] as const)(
    "operator killed %s each write of a creation leaves one object",
    async (when) => {
      const writes = await killAtEach(when, one, {
        begin: apply,
        end: async (manifest, at) => {
          await settle(manifest);
          expect(await count(one.count, manifest.metadata.name), at).toBe(1);
        },
      });
      // Finalizer, stored object and status.
      expect(writes).toBeGreaterThanOrEqual(3);
    },
  );

  if (change !== undefined)
    test.each(["before", "after"] as const)(
      "operator killed %s each write of an update applies the update to the same object",
      async (when) => {
        const writes = await killAtEach(when, one, {
          before: make,
          begin: (manifest) => apply({ ...manifest, spec: { ...manifest.spec, ...change } }),
          end: async (manifest, at) => {
            await settle(manifest);
            expect(await count(one.count, manifest.metadata.name), at).toBe(1);
            expect(await count(changed ?? "", manifest.metadata.name), at).toBe(1);
          },
        });
        expect(writes).toBeGreaterThanOrEqual(2);
      },
    );

  test.each(["before", "after"] as const)(
    "object deleted after the operator was killed %s each write of its creation leaves no stored data",
    async (when) => {
      await killAtEach(when, one, {
        begin: apply,
        end: async (manifest, at) => {
          await world.remove(manifest);
          await untilDisconnected(manifest);
          expect(await count(one.count, manifest.metadata.name), at).toBeLessThanOrEqual(one.left ?? 0);
        },
      });
    },
  );

  test.each(["before", "after"] as const)(
    "operator killed %s each write of a deletion leaves no stored data behind",
    async (when) => {
      const writes = await killAtEach(when, one, {
        before: make,
        begin: async (manifest) => {
          await world.remove(manifest);
          return manifest;
        },
        end: async (manifest, at) => {
          await untilDisconnected(manifest);
          expect(await count(one.count, manifest.metadata.name), at).toBe(one.left ?? 0);
        },
      });
      expect(writes).toBeGreaterThanOrEqual(2);
    },
  );
});
