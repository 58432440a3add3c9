import { expect, test } from "vitest";
import type { CompiledPolicy } from "../../core/policies/policy.ts";
import { aRule } from "../harness/gate.ts";
import { waitFor } from "../harness/wait.ts";
import type { TestKey } from "./client.ts";
import { type GateProcess, spawnGate } from "./gate-process.ts";
import { type LocalApi, openSystem, type SpawnedApi, type System } from "./system.ts";

/*
 * Changes that do not touch the key itself, and are easily forgotten therefore. Each is made at one api-server, and has to be
 * acted on by a sidecar and by another api-server, each in a process of its own. 30 seconds are the promise; below one second
 * is what is normal.
 */

const DEADLINE_MS = 5000;
const NORMAL_MS = 1000;
/** The median counts: machines that run tests stand still for a moment now and then. */
const ROUNDS = 3;

const HOUR_MS = 3_600_000;
const SLUG = "documents.read";
/** Everything needs the permission. */
const NEEDS_SLUG = { rules: [aRule({ permissions: SLUG })] };

interface Scene {
  readonly system: System;
  readonly apiId: string;
  /** Where changes are made. */
  readonly here: LocalApi;
  readonly there: SpawnedApi;
  readonly gate: GateProcess;
  makeKey(body?: object): Promise<TestKey>;
}

async function openScene(policy: Partial<CompiledPolicy> = {}): Promise<Scene> {
  const system = await openSystem();
  const here = await system.api();
  const { apiId } = await here.data("apis.createApi", { name: "guarded" });
  const [there, gate] = await Promise.all([system.spawnApi(), spawnGate(system, here, { apiId, policy })]);
  const makeKey = (body: object = {}): Promise<TestKey> => here.data("keys.createKey", { apiId, ...body });
  return { system, apiId, here, there, gate, makeKey };
}

/** What a sidecar answers, and what another api-server says of the same key. */
interface Enforced {
  readonly key: string;
  readonly status: number;
  readonly code: string;
  /** The query that verifyKey asks with, as the policy does. */
  readonly permissions?: string;
}

async function untilEnforced({ there, gate }: Scene, { key, status, code, permissions }: Enforced): Promise<number[]> {
  const since = performance.now();
  const bound = { deadlineMs: DEADLINE_MS, everyMs: 2 };
  const ask = permissions === undefined ? { key } : { key, permissions };
  const timeOf = async (what: string, probe: () => Promise<boolean>): Promise<number> => {
    await waitFor(what, probe, bound);
    return performance.now() - since;
  };
  return Promise.all([
    timeOf(`${status} from the sidecar`, async () => (await gate.status(key)) === status),
    timeOf(`${code} from the other api-server`, async () => {
      return (await there.data("keys.verifyKey", ask)).code === code;
    }),
  ]);
}

/** One change: what holds when it is made, and what it brings. The clock runs from its answer on. */
interface Round {
  readonly before: Enforced;
  change(): Promise<readonly Enforced[]>;
}

/** Makes the change, each time of other things, and holds the times against what is normal. */
async function measure(scene: Scene, makeRound: (round: number) => Promise<Round>, rounds = ROUNDS): Promise<void> {
  const tookMs: number[][] = [];
  for (let round = 0; round < rounds; round++) {
    const { before, change } = await makeRound(round);
    await untilEnforced(scene, before);
    const brought = await change();
    const times = await Promise.all(brought.map((one) => untilEnforced(scene, one)));
    tookMs.push([0, 1].map((where) => Math.max(...times.map((pair) => pair[where] ?? Number.NaN))));
  }
  for (const [index, where] of ["sidecar", "other api-server"].entries()) {
    const times = tookMs.map((pair) => pair[index] ?? Number.NaN).sort((a, b) => a - b);
    console.info(`${expect.getState().currentTestName}: ${where}: ${times.map((ms) => ms.toFixed(1)).join(", ")} ms`);
    expect(times[Math.floor(rounds / 2)], where).toBeLessThan(NORMAL_MS);
  }
}

test("identities.updateIdentity: a lower limit of an identity holds its keys", async () => {
  const scene = await openScene();
  const ratelimits = (limit: number) => [{ name: "shared", limit, duration: HOUR_MS, autoApply: true }];
  await measure(scene, async (round) => {
    const externalId = `user_${round}`;
    await scene.here.data("identities.createIdentity", { externalId, ratelimits: ratelimits(1_000_000) });
    const { key } = await scene.makeKey({ externalId });
    return {
      before: { key, status: 200, code: "VALID" },
      change: async () => {
        await scene.here.data("identities.updateIdentity", { identity: externalId, ratelimits: ratelimits(1) });
        return [{ key, status: 429, code: "RATE_LIMITED" }];
      },
    };
  });
});

test("identities.deleteIdentity: its limits hold its keys no longer", async () => {
  const scene = await openScene();
  await measure(scene, async (round) => {
    const externalId = `user_${round}`;
    const ratelimits = [{ name: "shared", limit: 1, duration: HOUR_MS, autoApply: true }];
    await scene.here.data("identities.createIdentity", { externalId, ratelimits });
    const { key } = await scene.makeKey({ externalId });
    return {
      before: { key, status: 429, code: "RATE_LIMITED" },
      change: async () => {
        await scene.here.data("identities.deleteIdentity", { identity: externalId });
        return [{ key, status: 200, code: "VALID" }];
      },
    };
  });
});

test("permissions.deletePermission: keys that held it lack it", async () => {
  const scene = await openScene(NEEDS_SLUG);
  await measure(scene, async () => {
    const { key } = await scene.makeKey({ permissions: [SLUG] });
    return {
      before: { key, permissions: SLUG, status: 200, code: "VALID" },
      change: async () => {
        await scene.here.data("permissions.deletePermission", { permission: SLUG });
        return [{ key, permissions: SLUG, status: 403, code: "INSUFFICIENT_PERMISSIONS" }];
      },
    };
  });
});

test("permissions.deletePermission: keys that held it through a role lack it", async () => {
  const scene = await openScene(NEEDS_SLUG);
  await measure(scene, async (round) => {
    const name = `reader ${round}`;
    await scene.here.data("permissions.createRole", { name, permissions: [SLUG] });
    const { key } = await scene.makeKey({ roles: [name] });
    return {
      before: { key, permissions: SLUG, status: 200, code: "VALID" },
      change: async () => {
        await scene.here.data("permissions.deletePermission", { permission: SLUG });
        return [{ key, permissions: SLUG, status: 403, code: "INSUFFICIENT_PERMISSIONS" }];
      },
    };
  });
});

test("permissions.deleteRole: its keys lack what it granted", async () => {
  const scene = await openScene(NEEDS_SLUG);
  await measure(scene, async (round) => {
    const name = `reader ${round}`;
    await scene.here.data("permissions.createRole", { name, permissions: [SLUG] });
    const { key } = await scene.makeKey({ roles: [name] });
    return {
      before: { key, permissions: SLUG, status: 200, code: "VALID" },
      change: async () => {
        await scene.here.data("permissions.deleteRole", { role: name });
        return [{ key, permissions: SLUG, status: 403, code: "INSUFFICIENT_PERMISSIONS" }];
      },
    };
  });
});

test("permissions.setRolePermissions: what a role grants no longer, and what it grants anew", async () => {
  const scene = await openScene(NEEDS_SLUG);
  const { roleId } = await scene.here.data("permissions.createRole", { name: "reader", permissions: [SLUG] });
  const { key } = await scene.makeKey({ roles: ["reader"] });
  const granted: Enforced = { key, permissions: SLUG, status: 200, code: "VALID" };
  const refused: Enforced = { key, permissions: SLUG, status: 403, code: "INSUFFICIENT_PERMISSIONS" };
  const steps = [
    { before: granted, permissions: [], brought: refused },
    { before: refused, permissions: [SLUG], brought: granted },
    { before: granted, permissions: ["documents.write"], brought: refused },
  ];
  const rounds = steps.map(({ before, permissions, brought }) => ({
    before,
    change: async () => {
      await scene.here.data("permissions.setRolePermissions", { roleId, permissions });
      return [brought];
    },
  }));
  await measure(scene, async (round) => rounds[round] as Round);
});

test("keys.rerollKey: the old key ends, and its successor is known", async () => {
  const scene = await openScene();
  await measure(scene, async () => {
    const { keyId, key } = await scene.makeKey();
    return {
      before: { key, status: 200, code: "VALID" },
      change: async () => {
        const successor = await scene.here.data("keys.rerollKey", { keyId, expiration: 0 });
        return [
          { key, status: 401, code: "EXPIRED" },
          { key: successor.key, status: 200, code: "VALID" },
        ];
      },
    };
  });
});

test("apis.deleteApi: its keys are unknown", async () => {
  const scene = await openScene();
  const { key } = await scene.makeKey();
  const round: Round = {
    before: { key, status: 200, code: "VALID" },
    change: async () => {
      await scene.here.data("apis.deleteApi", { apiId: scene.apiId });
      return [{ key, status: 401, code: "NOT_FOUND" }];
    },
  };
  // A sidecar guards one API, so there is one round.
  await measure(scene, async () => round, 1);
});

test("refill: a key without credits can be used again", async () => {
  const scene = await openScene();
  await measure(scene, async (round) => {
    const refill = { interval: "daily", amount: 100_000 };
    const { keyId, key } = await scene.makeKey({ credits: { remaining: 0, refill } });
    // The days lie ahead, so that the servers' own runs, which are for today, have nothing to do with them.
    await scene.system.db.query("update key_credits set last_refill_on = '2051-01-01' where key_id = $1", [keyId]);
    return {
      before: { key, status: 429, code: "USAGE_EXCEEDED" },
      change: async () => {
        await scene.here.server.refill(`2051-01-0${round + 2}`);
        return [{ key, status: 200, code: "VALID" }];
      },
    };
  });
});
