import { afterAll, beforeAll, expect, test } from "vitest";
import type { CreditRef, CreditStore } from "../../../edge/credits/contract.ts";
import { type Edge, openRedisEdge } from "../../../edge/open.ts";
import { createTestRedis, type TestRedis } from "../../../test/harness/redis.ts";
import { waitFor } from "../../../test/harness/wait.ts";
import { createCreditService } from "../../credits/postgres-credits.ts";
import { buildTestApp, type Reply, type TestApp } from "../../test/app.ts";

/*
 * keys.updateCredits while the key is being used, on a shared store, where the counter can be suspended between any two
 * commands of a spender.
 */

let redis: TestRedis;
let edge: Edge;
let t: TestApp;
let apiId: string;
/** Stands before every removal of a counter. */
let beforeRemoval = async (): Promise<void> => {};

/** The credit store of an edge, whose removals can be held up. */
const blocked = (store: CreditStore): CreditStore =>
  new Proxy(store, {
    get(target, name) {
      if (name === "remove") return (refs: readonly CreditRef[]) => beforeRemoval().then(() => target.remove(refs));
      const member = Reflect.get(target, name);
      return typeof member === "function" ? member.bind(target) : member;
    },
  });

beforeAll(async () => {
  redis = await createTestRedis();
  edge = await openRedisEdge({ url: redis.url, prefix: redis.prefix, clientName: "update-credits-races" });
  t = await buildTestApp({
    deps: ({ db, nowMs, log }) => ({
      counters: edge.counters({ timeoutMs: 10_000 }),
      credits: createCreditService({ db, store: blocked(edge.credits), nowMs, log }),
    }),
  });
  ({ apiId } = await t.data("apis.createApi", { name: "races" }));
});
afterAll(async () => {
  await t.close();
  await edge.close();
  await redis.close();
});

/** Several callers at the same time, each with one call after the other. */
async function inParallel(callers: number, calls: number, call: (index: number) => Promise<Reply>): Promise<Reply[]> {
  const replies = await Promise.all(
    Array.from({ length: callers }, async () => {
      const own: Reply[] = [];
      for (let index = 0; index < calls; index++) own.push(await call(index));
      return own;
    }),
  );
  return replies.flat();
}

const create = (remaining: number) => t.data("keys.createKey", { apiId, credits: { remaining } });
const statuses = (replies: readonly Reply[]): Set<number> => new Set(replies.map(({ status }) => status));
const remainingOf = async (keyId: string) => (await t.data("keys.getKey", { keyId })).credits?.remaining;

test("concurrent credit changes and verifications lose no credits and never fail", async () => {
  const { keyId, key } = await create(1000);
  const change = (index: number) =>
    t.call("keys.updateCredits", {
      keyId,
      ...(index % 3 === 2 ? { operation: "decrement", value: 7 } : { operation: "increment", value: 10 }),
    });
  const [verified, changed] = await Promise.all([
    inParallel(4, 60, () => t.call("keys.verifyKey", { key })),
    inParallel(3, 15, change),
  ]);
  expect(statuses([...verified, ...changed])).toEqual(new Set([200]));
  expect(new Set(verified.map(({ body }) => body.data.code))).toEqual(new Set(["VALID"]));
  expect(await remainingOf(keyId)).toBe(1000 - 4 * 60 + 3 * (10 * 10 - 5 * 7));
});

test("exhausted key is accepted exactly as often as credits are added", async () => {
  const { keyId, key } = await create(20);
  const [verified, changed] = await Promise.all([
    inParallel(4, 60, () => t.call("keys.verifyKey", { key })),
    inParallel(2, 10, () => t.call("keys.updateCredits", { keyId, operation: "increment", value: 3 })),
  ]);
  expect(statuses([...verified, ...changed])).toEqual(new Set([200]));
  const spent = verified.filter(({ body }) => body.data.code === "VALID").length;
  expect(verified.filter(({ body }) => body.data.code === "USAGE_EXCEEDED")).toHaveLength(240 - spent);
  expect(await remainingOf(keyId)).toBe(20 + 2 * 10 * 3 - spent);
});

test("key that alternates between unlimited and limited stays verifiable", async () => {
  const { keyId, key } = await create(1000);
  const [verified, changed] = await Promise.all([
    inParallel(4, 60, () => t.call("keys.verifyKey", { key })),
    inParallel(1, 20, (index) =>
      t.call("keys.updateCredits", { keyId, operation: "set", value: index % 2 === 0 ? null : 1000 }),
    ),
  ]);
  expect(statuses([...verified, ...changed])).toEqual(new Set([200]));
  expect(new Set(verified.map(({ body }) => body.data.code))).toEqual(new Set(["VALID"]));
});

test("limiting a key again waits until its former credit counter is removed", async () => {
  const { keyId, key } = await create(5);
  await t.data("keys.verifyKey", { key });
  const set = (value: number | null) => t.data("keys.updateCredits", { keyId, operation: "set", value });
  const reached = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  beforeRemoval = () => {
    reached.resolve();
    return gate.promise;
  };
  try {
    const unlimited = set(null);
    await reached.promise;
    let isLimited = false;
    const limited = set(10).then(() => {
      isLimited = true;
    });
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    await waitFor("the second change", async () => isLimited || (await t.deps.db.query(waiting)).rowCount === 1);
    expect(isLimited).toBe(false);
    gate.resolve();
    await Promise.all([unlimited, limited]);
  } finally {
    gate.resolve();
    beforeRemoval = async () => {};
  }
  for (const credits of [9, 8]) expect(await t.data("keys.verifyKey", { key })).toMatchObject({ credits });
});
