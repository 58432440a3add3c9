import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LimitCharge } from "../../../core/charges.ts";
import type { CreditCounter, CreditRef, CreditStore } from "../../../edge/credits/contract.ts";
import type { EdgeCounters } from "../../../edge/open.ts";
import { aName, EDGES, type OpenedEdge } from "./edges.ts";

describe.each(EDGES)("credits $name", ({ open }) => {
  let opened: OpenedEdge;
  let counters: EdgeCounters;
  let credits: CreditStore;

  beforeAll(async () => {
    opened = await open();
    counters = opened.edge.counters({ timeoutMs: 5_000 });
    credits = opened.edge.credits;
  });
  afterAll(() => opened.close());

  const aKey = () => ({ workspaceId: aName("ws"), keyId: aName("key") });
  const spend = async (ref: { workspaceId: string; keyId: string }, cost = 1, limits: LimitCharge[] = []) =>
    (await counters.consume({ limits, credits: { ...ref, cost } })).credits;
  const load = (ref: CreditRef, counter: CreditCounter) => credits.load([{ ref, counter }]);
  const read = async (ref: CreditRef) => (await credits.read([ref]))[0];
  const suspend = async (ref: CreditRef) => (await credits.suspend([ref]))[0];
  const clear = (ref: CreditRef, counter: CreditCounter) => credits.clearDirty([{ ref, counter }]);
  const dirty = async (workspaceId: string) => (await credits.listDirty(workspaceId, 10)).items;
  const asked = async (workspaceId: string) => (await credits.takeLoadRequests(workspaceId, 10)).items;
  const aLimit = (charge: Partial<LimitCharge>): LimitCharge => ({
    workspaceId: "ws_1",
    scope: { kind: "name", value: "writes" },
    identifier: aName("id"),
    limit: 1,
    durationMs: 3_600_000,
    cost: 1,
    accuracy: "strict",
    ...charge,
  });

  test("concurrent requests never spend more credits than granted", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 100, spent: 10 });
    const outcomes = await Promise.all(Array.from({ length: 300 }, () => spend(ref)));
    expect(outcomes.filter((outcome) => outcome?.status === "spent")).toHaveLength(90);
    expect(await read(ref)).toEqual({ rev: 1, granted: 100, spent: 100 });
  });

  test("credits up to 2^53 − 1 are reported and spent exactly", async () => {
    const ref = aKey();
    const granted = Number.MAX_SAFE_INTEGER;
    await load(ref, { rev: granted, granted, spent: 0 });
    expect(await read(ref)).toEqual({ rev: granted, granted, spent: 0 });
    expect(await spend(ref, 0)).toEqual({ status: "spent", remaining: granted });
    expect(await spend(ref, granted - 2)).toEqual({ status: "spent", remaining: 2 });
    expect(await spend(ref, 2)).toEqual({ status: "spent", remaining: 0 });
    expect(await spend(ref, 1)).toEqual({ status: "refused", remaining: 0 });
    expect(await suspend(ref)).toEqual({ rev: granted, granted, spent: granted });
  });

  test("cost above the remaining credits is denied and spends nothing", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 5, spent: 0 });
    expect(await spend(ref, 15)).toEqual({ status: "refused", remaining: 5 });
    expect(await spend(ref, 5)).toEqual({ status: "spent", remaining: 0 });
    expect(await spend(ref, 0)).toEqual({ status: "spent", remaining: 0 });
  });

  test("request denied by a limit spends no credits and reports the remaining credits", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 5, spent: 1 });
    const limit = aLimit({ limit: 1 });
    await spend(ref, 1, [limit]);
    expect(await spend(ref, 1, [limit])).toEqual({ status: "unreached", remaining: 3 });
    expect(await read(ref)).toEqual({ rev: 1, granted: 5, spent: 2 });
  });

  test("request denied for lack of credits is still charged to its limits", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 0, spent: 0 });
    const limit = aLimit({ limit: 3 });
    expect(await spend(ref, 1, [limit])).toEqual({ status: "refused", remaining: 0 });
    const { limits } = await counters.consume({ limits: [{ ...limit, cost: 0 }] });
    expect(limits[0]?.remaining).toBe(2);
  });

  test("spending from a missing or closed credit counter requests its loading", async () => {
    const ref = aKey();
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await credits.findAskingWorkspaces(["ws_other", ref.workspaceId])).toEqual([ref.workspaceId]);
    expect(await asked(ref.workspaceId)).toEqual([ref]);
    expect(await asked(ref.workspaceId)).toEqual([]);
    expect(await credits.findAskingWorkspaces(["ws_other", ref.workspaceId])).toEqual([]);
    await load(ref, { rev: 1, granted: 5, spent: 0 });
    await suspend(ref);
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await credits.findAskingWorkspaces(["ws_other", ref.workspaceId])).toEqual([ref.workspaceId]);
    expect(await asked(ref.workspaceId)).toEqual([ref]);
  });

  test("suspending a credit counter returns its exact value, or undefined if the counter is missing", async () => {
    const ref = aKey();
    expect(await suspend(ref)).toBeUndefined();
    expect(await read(ref)).toBeUndefined();
    await load(ref, { rev: 2, granted: 10, spent: 3 });
    await spend(ref, 2);
    expect(await suspend(ref)).toEqual({ rev: 2, granted: 10, spent: 5 });
    expect(await suspend(ref)).toEqual({ rev: 2, granted: 10, spent: 5 });
  });

  test("loading the same credit revision reopens the counter and keeps the larger spent value", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 10, spent: 4 });
    await suspend(ref);
    await load(ref, { rev: 1, granted: 10, spent: 2 });
    expect(await spend(ref)).toEqual({ status: "spent", remaining: 5 });
    await load(ref, { rev: 1, granted: 10, spent: 9 });
    expect(await spend(ref, 0)).toEqual({ status: "spent", remaining: 1 });
  });

  test("higher credit revision replaces the counter, and a lower one is rejected", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 10, spent: 4 });
    await load(ref, { rev: 2, granted: 20, spent: 0 });
    expect(await spend(ref, 0)).toEqual({ status: "spent", remaining: 20 });
    await load(ref, { rev: 1, granted: 10, spent: 4 });
    expect(await read(ref)).toEqual({ rev: 2, granted: 20, spent: 0 });
  });

  test("setting credits during spending loses no credits and allows no spending in between", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 1_000, spent: 0 });
    const spending = Array.from({ length: 200 }, () => spend(ref));
    const closed = await suspend(ref);
    const late = await spend(ref);
    await load(ref, { rev: 2, granted: 50, spent: 0 });
    const outcomes = await Promise.all(spending);
    const spentBefore = outcomes.filter((outcome) => outcome?.status === "spent").length;
    expect(late).toEqual({ status: "unknown" });
    const after = await read(ref);
    expect(after).toMatchObject({ rev: 2, granted: 50 });
    expect((closed?.spent ?? 0) + (after?.spent ?? 0)).toBe(spentBefore);
  });

  test("spent credit counter is dirty until exactly its value is stored in Postgres", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 10, spent: 0 });
    expect(await dirty(ref.workspaceId)).toEqual([]);
    await spend(ref, 0);
    expect(await dirty(ref.workspaceId)).toEqual([]);
    await spend(ref, 2);
    const [seen] = await dirty(ref.workspaceId);
    expect(seen).toEqual({ ref, counter: { rev: 1, granted: 10, spent: 2 } });
    await spend(ref, 1);
    await clear(ref, { rev: 1, granted: 10, spent: 2 });
    expect(await dirty(ref.workspaceId)).toHaveLength(1);
    await clear(ref, { rev: 1, granted: 10, spent: 3 });
    expect(await dirty(ref.workspaceId)).toEqual([]);
  });

  test("removing a credit counter also removes its dirty flag", async () => {
    const ref = aKey();
    await load(ref, { rev: 1, granted: 10, spent: 0 });
    await spend(ref);
    await credits.remove([ref]);
    expect(await read(ref)).toBeUndefined();
    expect(await dirty(ref.workspaceId)).toEqual([]);
  });

  test("after all credit counters are closed, spending from each is blocked until it is loaded again", async () => {
    const [ref, other] = [aKey(), aKey()];
    for (const each of [ref, other]) await load(each, { rev: 1, granted: 10, spent: 1 });
    await credits.closeAll();
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await spend(other)).toEqual({ status: "unknown" });
    await load(ref, { rev: 1, granted: 10, spent: 5 });
    expect(await spend(ref)).toEqual({ status: "spent", remaining: 4 });
  });

  test("credit counters of several workspaces are processed in one call", async () => {
    const refs = [aKey(), aKey(), aKey()];
    const [first, , third] = refs as [CreditRef, CreditRef, CreditRef];
    await credits.load([first, third].map((ref, i) => ({ ref, counter: { rev: 1, granted: 10 + i, spent: 0 } })));
    expect(await credits.read(refs)).toEqual([
      { rev: 1, granted: 10, spent: 0 },
      undefined,
      { rev: 1, granted: 11, spent: 0 },
    ]);
    expect(await credits.suspend(refs)).toEqual(await credits.read(refs));
    expect(await spend(third)).toEqual({ status: "unknown" });
    await credits.remove(refs);
    expect(await credits.read(refs)).toEqual([undefined, undefined, undefined]);
  });

  test("workspaces with dirty credit counters are listed, with a flag if the list is truncated", async () => {
    const [ref, idle] = [aKey(), aKey()];
    const keys = [ref, { ...ref, keyId: aName("key") }, { ...ref, keyId: aName("key") }];
    for (const each of [...keys, idle]) await load(each, { rev: 1, granted: 10, spent: 0 });
    const ids = [idle.workspaceId, ref.workspaceId];
    expect(await credits.findDirtyWorkspaces(ids)).toEqual([]);
    for (const each of keys) await spend(each);
    expect(await credits.findDirtyWorkspaces(ids)).toEqual([ref.workspaceId]);
    const some = await credits.listDirty(ref.workspaceId, 2);
    expect(some).toMatchObject({ isMore: true, refused: 0 });
    expect(some.items).toHaveLength(2);
    await credits.clearDirty(some.items);
    expect(await credits.listDirty(ref.workspaceId, 2)).toMatchObject({ isMore: false, items: [{}] });
  });
});
