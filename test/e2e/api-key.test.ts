import { mkdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ApiClient } from "../../operator/api/client.ts";
import type { OperatorContext } from "../../operator/reconcilers/context.ts";
import type { SecretStore } from "../../operator/source/contract.ts";
import { conditionOf, type TestManifest } from "./operator-world.ts";
import { oneWorkspace, openReconcilerWorld, type ReconcilerWorld } from "./reconciler-world.ts";

/*
 * ApiKeys on a real api-server, with their Secrets as files. The test controls reconciles, the clock and operator crashes.
 * api-key-kubernetes.test.ts tests the parts that need a cluster.
 */

let world: ReconcilerWorld;
let lines: string[];
beforeEach(async () => {
  world = await openReconcilerWorld();
  lines = [];
});
afterEach(() => world.close());

const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const policy = (spec: Record<string, unknown> = {}): TestManifest => ({
  kind: "ApiKeyPolicy",
  metadata: { name: "orders", namespace: "shop" },
  spec: { api: { name: "orders-api" }, target: { port: 80 }, ...spec },
});
const apiKey = (
  spec: Record<string, unknown> = {},
  metadata = { name: "billing", namespace: "shop" },
): TestManifest => ({
  kind: "ApiKey",
  metadata,
  spec: { policyRef: { name: "orders" }, secretRef: { name: "orders-key" }, ...spec },
});

/** Context of an operator with readable log and Events. Its clock is wrong, which must not matter. */
const context = (more: Partial<OperatorContext> = {}): OperatorContext => ({
  ...world.ctx,
  nowMs: () => Date.now() + 30 * DAY,
  log: pino({ level: "trace" }, { write: (line: string) => void lines.push(line) }),
  ...more,
  source: {
    ...(more.source ?? world.ctx.source),
    recordEvent: async (_, event) => void lines.push(JSON.stringify(event)),
  },
});
/** Ages the existing keys. */
const age = (ms: number) =>
  world.store.sql("update keys set created_at = created_at - $1, expires_at = expires_at - $1", [ms]);
async function settle(one: TestManifest = apiKey(), ctx = context()) {
  await world.work(one, ctx);
  return world.statusIn(one);
}
async function given(one: TestManifest = apiKey()) {
  await world.apply(policy());
  await world.work(policy(), context());
  await world.apply(one);
  return await settle(one);
}
const secretFile = (name = "orders-key", member = "key") => join(world.stateDir, "secrets", "shop", name, member);
const secretText = (name?: string, member?: string) => readFile(secretFile(name, member), "utf8");
const listed = (name = "billing") => world.store.keysOf(`test/ApiKey/shop/${name}`);
const verify = async (key: string) => (await world.store.call("keys.verifyKey", { key })).data;
const reasonOf = (status: Parameters<typeof conditionOf>[0]) => conditionOf(status, "Ready")?.reason;

describe("an ApiKey", () => {
  test("ApiKey stores its key in a file and nowhere else", async () => {
    await world.store.call("permissions.createRole", { name: "reader", permissions: ["orders.read"] });
    const spec = {
      owner: "acme",
      name: "Billing",
      roles: ["Reader"],
      permissions: ["orders.write"],
      ratelimits: [{ name: "requests", limit: 5, duration: "1m", autoApply: true }],
      credits: { remaining: 100, refill: { interval: "Monthly", amount: 100, refillDay: 31 } },
      expires: "2099-01-31T00:00:00Z",
      secretRef: { name: "orders-key", key: "ORDERS_API_KEY" },
    };
    const status = await given(apiKey(spec));
    expect(reasonOf(status)).toBe("Succeeded");
    expect(status).toMatchObject({ keyId: expect.stringMatching(/^key_/), expiresAt: "2099-01-31T00:00:00.000Z" });
    const key = await secretText("orders-key", "ORDERS_API_KEY");
    expect(await verify(key)).toMatchObject({
      valid: true,
      keyId: status.keyId,
      name: "Billing",
      identity: { externalId: "acme" },
      roles: ["reader"],
      permissions: expect.arrayContaining(["orders.read", "orders.write"]),
      credits: 99,
      expires: Date.parse(spec.expires),
      ratelimits: [expect.objectContaining({ name: "requests", limit: 5 })],
    });
    expect((await stat(secretFile("orders-key", "ORDERS_API_KEY"))).mode & 0o777).toBe(0o600);
    expect(lines.length).toBeGreaterThan(0);
    const everythingSaid = lines.join("") + JSON.stringify([status, world.objectOf(apiKey())]);
    expect(everythingSaid).toContain(String(status.keyId));
    expect(everythingSaid).not.toContain(key);
    // The next reconcile has no work.
    lines.length = 0;
    expect(await settle(apiKey())).toEqual(status);
    expect(lines.filter((line) => line.includes('"level":30'))).toEqual([]);
    expect(await listed()).toHaveLength(1);
  });

  test("ApiKey applies spec changes to the same key and reverts drift", async () => {
    const { keyId } = await given(apiKey({ owner: "acme", permissions: ["a.b.c"], credits: { remaining: 7 } }));
    const key = await secretText();
    await world.store.call("keys.updateCredits", { keyId, operation: "set", value: 3 });
    await world.apply(
      apiKey({ name: "New", permissions: ["d.e.f"], credits: { remaining: 7 }, expires: "2098-01-01T00:00:00Z" }),
    );
    expect((await settle()).keyId).toBe(keyId);
    expect(await verify(key)).toMatchObject({ keyId, name: "New", permissions: ["d.e.f"], credits: 2 });
    const manager = { "Postern-Manager": "test/ApiKey/shop/billing" };
    await world.store.call("keys.updateKey", { keyId, enabled: false, permissions: [], externalId: "other" }, manager);
    await settle();
    const verified = await verify(key);
    expect(verified).toMatchObject({ valid: true, permissions: ["d.e.f"] });
    expect(verified).not.toHaveProperty("identity");
    expect(lines.join("")).toContain("DriftCorrected");
    // Other callers are referred to the manifest.
    expect((await world.store.call("keys.updateKey", { keyId, enabled: false })).status).toBe(409);
  });

  test("ApiKey waits for its policy and roles", async () => {
    const one = apiKey({ roles: ["later"] });
    await world.apply(one);
    expect(reasonOf(await settle(one))).toBe("DependencyNotReady");
    await world.apply(policy());
    const before = await settle(one);
    expect(reasonOf(before)).toBe("DependencyNotReady");
    expect(conditionOf(before, "Ready")?.message).toContain("ApiKeyPolicy shop/orders is not ready yet");
    await world.work(policy(), context());
    expect(conditionOf(await settle(one), "Ready")).toMatchObject({ reason: "DependencyNotReady", message: /later/ });
    expect(await listed()).toEqual([]);
    await world.store.call("permissions.createRole", { name: "later" });
    expect(reasonOf(await settle(one))).toBe("Succeeded");
  });

  test("ApiKey in another namespace requires that the policy allows that namespace", async () => {
    await given();
    const elsewhere = apiKey(
      { policyRef: { name: "orders", namespace: "shop" } },
      { name: "billing", namespace: "lab" },
    );
    await world.apply(elsewhere);
    expect(reasonOf(await settle(elsewhere))).toBe("NotAllowed");
    await world.apply(policy({ allowedNamespaces: ["lab"] }));
    await world.work(policy(), context());
    expect(reasonOf(await settle(elsewhere))).toBe("Succeeded");
  });

  test("ApiKey leaves foreign files unchanged, and the older of two ApiKeys owns a Secret", async () => {
    const file = secretFile();
    await given(apiKey({ secretRef: { name: "other" } }));
    await world.remove(apiKey());
    await settle();
    await rm(secretFile("other"), { force: true });
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, "of another");
    await world.apply(apiKey());
    const status = await settle();
    expect(conditionOf(status, "Stalled")).toMatchObject({ status: "True", reason: "SecretNotOwned" });
    expect(await secretText()).toBe("of another");
    expect(await listed()).toEqual([]);
    await rm(join(file, ".."), { recursive: true });
    expect(reasonOf(await settle())).toBe("Succeeded");
    const competitor = apiKey({}, { name: "younger", namespace: "shop" });
    await world.apply(competitor);
    expect(reasonOf(await settle(competitor))).toBe("Conflict");
    expect(await listed("younger")).toEqual([]);
  });

  test("deleted ApiKey leaves neither keys nor a file", async () => {
    await given();
    const first = await secretText();
    await rm(secretFile());
    await settle();
    const second = await secretText();
    expect(await listed()).toHaveLength(2);
    await world.remove(apiKey());
    await settle();
    for (const key of [first, second]) expect(await verify(key)).toMatchObject({ code: "NOT_FOUND" });
    expect(world.objectOf(apiKey())).toBeUndefined();
    await expect(stat(secretFile())).rejects.toThrow("ENOENT");
  });

  test("expired ApiKey gets a successor only after a later expiry is set", async () => {
    const one = apiKey({
      expires: new Date(Date.now() + HOUR).toISOString(),
      rotation: { every: "30m", overlap: "1m" },
    });
    const { keyId, nextRotation, expiresAt } = await given(one);
    expect(Date.parse(String(nextRotation))).toBeLessThan(Date.parse(String(expiresAt)));
    await world.apply(apiKey({ ...one.spec, expires: new Date(Date.now() - 1).toISOString() }));
    expect(conditionOf(await settle(one), "Stalled")).toMatchObject({ reason: "Expired" });
    expect((await listed()).map((key) => key.keyId)).toEqual([keyId]);
    expect((await verify(await secretText())).code).toBe("EXPIRED");
    await world.apply(apiKey({ ...one.spec, expires: "2099-01-01T00:00:00Z" }));
    expect(await settle(one)).toMatchObject({ keyId, expiresAt: "2099-01-01T00:00:00.000Z" });
    expect((await verify(await secretText())).valid).toBe(true);
    // An ApiKey that expired before its creation never has a key.
    const late = apiKey(
      { expires: "2020-01-01T00:00:00Z", secretRef: { name: "late" } },
      { name: "late", namespace: "shop" },
    );
    await world.apply(late);
    expect(reasonOf(await settle(late))).toBe("Expired");
    expect(await listed("late")).toEqual([]);
  });
});

describe("a rotation", () => {
  const rotated = apiKey({ rotation: { every: "1h", overlap: "10m" }, credits: { remaining: 100 } });

  test("ApiKey rotation keeps settings and expires the former key after the overlap", async () => {
    const before = await given(rotated);
    const first = await secretText();
    await verify(first);
    await age(HOUR - MINUTE);
    expect((await settle(rotated)).keyId).toBe(before.keyId);
    await age(MINUTE);
    const startedMs = Date.now();
    const after = await settle(rotated);
    expect(after.keyId).not.toBe(before.keyId);
    expect(reasonOf(after)).toBe("Succeeded");
    expect(Date.parse(String(after.nextRotation)) - startedMs).toBeGreaterThan(HOUR - 1);
    const second = await secretText();
    expect(second).not.toBe(first);
    expect(await verify(second)).toMatchObject({ valid: true, keyId: after.keyId, name: "billing", credits: 98 });
    expect(await verify(first)).toMatchObject({ valid: true, keyId: before.keyId });
    const endOf = async (keyId: unknown) => (await listed()).find((key) => key.keyId === keyId)?.expires ?? Number.NaN;
    const end = await endOf(before.keyId);
    expect(Math.abs(end - startedMs - 10 * MINUTE)).toBeLessThan(MINUTE);
    expect(await endOf(after.keyId)).toBeNaN();
    const said = lines.join("");
    expect(said).toContain("KeyRotated");
    expect(said).not.toContain("DriftCorrected");
    for (const key of [first, second]) expect(said).not.toContain(key);

    // Another reconcile does not extend the overlap, after which the former key is revoked.
    await settle(rotated);
    expect(await endOf(before.keyId)).toBe(end);
    await age(10 * MINUTE);
    expect((await settle(rotated)).keyId).toBe(after.keyId);
    expect((await listed()).map(({ keyId }) => keyId)).toEqual([after.keyId]);
    expect(await verify(first)).toMatchObject({ code: "NOT_FOUND" });
  });

  test("ApiKey with a lost Secret rotates instead of restoring the old key", async () => {
    const before = await given(apiKey({ rotation: { overlap: "0s" } }));
    const first = await secretText();
    await rm(secretFile());
    const after = await settle(apiKey());
    expect(after.keyId).not.toBe(before.keyId);
    expect(await verify(await secretText())).toMatchObject({ valid: true, keyId: after.keyId });
    expect((await verify(first)).valid).toBe(false);
  });

  test("ApiKey rotation is not reverted by a Secret that names the former key", async () => {
    const before = await given(rotated);
    await rm(secretFile());
    const after = await settle(rotated);
    const note = join(world.stateDir, "secret-owners", "shop", "orders-key.json");
    const text = await readFile(note, "utf8");
    await writeFile(note, text.replace(String(after.keyId), String(before.keyId)));
    const third = await settle(rotated);
    expect([before.keyId, after.keyId]).not.toContain(third.keyId);
  });
});

/** An operator crash before or after a step. */
class Killed extends Error {}

describe("an operator that is killed", () => {
  const dies = (): never => {
    throw new Killed("killed");
  };
  /** The call that issues a key, and the one after it, which brings the key in the Secret into use. */
  type KeyCall = "issue" | "use";
  const withApi = (
    call: (which: KeyCall | undefined, go: () => Promise<unknown>) => Promise<unknown>,
  ): OperatorContext => {
    let isIssued = false;
    const whichOf = (procedure: string, body: unknown): KeyCall | undefined => {
      if (procedure !== "managed.applyObject") return undefined;
      if (isIssued) return "use";
      isIssued = (body as { secret?: { mayIssue: boolean } }).secret?.mayIssue === true;
      return isIssued ? "issue" : undefined;
    };
    const api = {
      call: (procedure: string, body: unknown) =>
        call(whichOf(procedure, body), () =>
          (world.api.call as (...all: unknown[]) => Promise<unknown>)(procedure, body),
        ),
    } as ApiClient;
    return context({ workspaces: oneWorkspace(api) });
  };
  const withSecrets = (change: (secrets: SecretStore) => Partial<SecretStore>): OperatorContext => {
    const { source } = world.ctx;
    return context({ source: { ...source, secrets: { ...source.secrets, ...change(source.secrets) } } });
  };
  const beforeCall = (name: KeyCall) => withApi((which, go) => (which === name ? dies() : go()));
  const afterCall = (name: KeyCall) =>
    withApi(async (which, go) => {
      const response = await go();
      return which === name ? dies() : response;
    });
  const STEPS: ReadonlyArray<{ readonly name: string; readonly ctx: () => OperatorContext; readonly unheld: boolean }> =
    [
      { name: "before the key is made", ctx: () => beforeCall("issue"), unheld: false },
      { name: "after the key is made", ctx: () => afterCall("issue"), unheld: true },
      { name: "before the Secret is written", ctx: () => withSecrets(() => ({ write: dies })), unheld: true },
      {
        name: "after the Secret is written",
        ctx: () => withSecrets(({ write }) => ({ write: async (...all) => (await write(...all)) ?? dies() })),
        unheld: false,
      },
      { name: "before the key comes into use", ctx: () => beforeCall("use"), unheld: false },
      { name: "after the key came into use", ctx: () => afterCall("use"), unheld: false },
    ];
  const killed = async (one: TestManifest, ctx: OperatorContext) => {
    const outcome = await world.work(one, ctx).catch((error: unknown) => error);
    return outcome instanceof Killed;
  };

  test.each(STEPS)(
    "operator that creates the first key and crashes $name leaves one key in the Secret",
    async ({ ctx, unheld }) => {
      await world.apply(policy());
      await world.work(policy(), context());
      await world.apply(apiKey());
      await killed(apiKey(), ctx());
      const left = await listed();
      if (unheld) {
        expect(left).toHaveLength(1);
        // The key expires even if no operator returns.
        expect(left[0]?.expires).toBeLessThanOrEqual(Date.now() + HOUR);
      }
      const status = await settle();
      expect(reasonOf(status)).toBe("Succeeded");
      const keys = await listed();
      expect(keys).toMatchObject([{ keyId: status.keyId, name: "billing", enabled: true }]);
      expect(keys[0]).not.toHaveProperty("expires");
      if (unheld) expect(keys[0]?.keyId).not.toBe(left[0]?.keyId);
      expect(await verify(await secretText())).toMatchObject({ valid: true, keyId: status.keyId });
    },
  );

  test.each(STEPS)(
    "operator that crashes $name during a rotation leaves one successor and keeps the overlap",
    async ({ ctx, unheld }) => {
      const one = apiKey({ rotation: { every: "1h", overlap: "10m" } });
      const before = await given(one);
      const first = await secretText();
      await age(2 * HOUR);
      expect(await killed(one, ctx())).toBe(true);
      // Both the former key and the one in the Secret work.
      for (const key of [first, await secretText()]) expect((await verify(key)).valid).toBe(true);
      const left = (await listed()).filter(({ keyId }) => keyId !== before.keyId);
      const status = await settle(one);
      expect(status.keyId).not.toBe(before.keyId);
      const second = await secretText();
      expect(await verify(second)).toMatchObject({ valid: true, keyId: status.keyId, name: "billing" });
      const keys = await listed();
      expect(keys.map(({ keyId }) => keyId).sort()).toEqual([before.keyId, status.keyId].sort());
      const end = keys.find(({ keyId }) => keyId === before.keyId)?.expires ?? Number.NaN;
      expect(Math.abs(end - Date.now() - 10 * MINUTE)).toBeLessThan(MINUTE);
      expect(keys.find(({ keyId }) => keyId === status.keyId)).not.toHaveProperty("expires");
      if (unheld) expect(left.map(({ keyId }) => keyId)).not.toContain(status.keyId);
    },
  );

  test("two operators that issue a key concurrently leave only one key", async () => {
    await given();
    await rm(secretFile());
    const outcomes = await Promise.allSettled([world.work(apiKey(), context()), world.work(apiKey(), context())]);
    expect(outcomes.some(({ status }) => status === "fulfilled")).toBe(true);
    const status = await settle();
    const second = await secretText();
    expect(await verify(second)).toMatchObject({ valid: true, keyId: status.keyId });
    // The active key and the expiring ones.
    for (const { keyId, expires } of await listed()) {
      if (keyId === status.keyId) expect(expires).toBeUndefined();
      else expect(expires).toBeLessThanOrEqual(Date.now() + HOUR);
    }
  });
});
