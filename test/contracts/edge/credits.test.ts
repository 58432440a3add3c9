import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LimitCharge } from "../../../edge/counters/contract.ts";
import type { CreditStore } from "../../../edge/credits/contract.ts";
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

  test("many at once never spend more than was granted", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 100, spent: 10 });
    const outcomes = await Promise.all(Array.from({ length: 300 }, () => spend(ref)));
    expect(outcomes.filter((outcome) => outcome?.status === "spent")).toHaveLength(90);
    expect(await credits.read(ref)).toEqual({ rev: 1, granted: 100, spent: 100 });
  });

  test("what cannot be paid in full is refused and spends nothing", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 5, spent: 0 });
    expect(await spend(ref, 15)).toEqual({ status: "refused", remaining: 5 });
    expect(await spend(ref, 5)).toEqual({ status: "spent", remaining: 0 });
    expect(await spend(ref, 0)).toEqual({ status: "spent", remaining: 0 });
  });

  test("a limit that refuses leaves the credits alone and tells what remains", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 5, spent: 1 });
    const limit = aLimit({ limit: 1 });
    await spend(ref, 1, [limit]);
    expect(await spend(ref, 1, [limit])).toEqual({ status: "unreached", remaining: 3 });
    expect(await credits.read(ref)).toEqual({ rev: 1, granted: 5, spent: 2 });
  });

  test("limits stay consumed when the credits refuse", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 0, spent: 0 });
    const limit = aLimit({ limit: 3 });
    expect(await spend(ref, 1, [limit])).toEqual({ status: "refused", remaining: 0 });
    const { limits } = await counters.consume({ limits: [{ ...limit, cost: 0 }] });
    expect(limits[0]?.remaining).toBe(2);
  });

  test("who finds no counter, or a closed one, asks for it to be loaded", async () => {
    const ref = aKey();
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await credits.takeLoadRequests(ref.workspaceId, 10)).toEqual([ref]);
    expect(await credits.takeLoadRequests(ref.workspaceId, 10)).toEqual([]);
    await credits.load(ref, { rev: 1, granted: 5, spent: 0 });
    await credits.suspend(ref);
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await credits.takeLoadRequests(ref.workspaceId, 10)).toEqual([ref]);
  });

  test("suspending gives the true counter, again and again, and undefined when there is none", async () => {
    const ref = aKey();
    expect(await credits.suspend(ref)).toBeUndefined();
    expect(await credits.read(ref)).toBeUndefined();
    await credits.load(ref, { rev: 2, granted: 10, spent: 3 });
    await spend(ref, 2);
    expect(await credits.suspend(ref)).toEqual({ rev: 2, granted: 10, spent: 5 });
    expect(await credits.suspend(ref)).toEqual({ rev: 2, granted: 10, spent: 5 });
  });

  test("loading the same rev reopens and keeps the greater spent", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 10, spent: 4 });
    await credits.suspend(ref);
    await credits.load(ref, { rev: 1, granted: 10, spent: 2 });
    expect(await spend(ref)).toEqual({ status: "spent", remaining: 5 });
    await credits.load(ref, { rev: 1, granted: 10, spent: 9 });
    expect(await spend(ref, 0)).toEqual({ status: "spent", remaining: 1 });
  });

  test("a higher rev replaces, a lower one is refused", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 10, spent: 4 });
    await credits.load(ref, { rev: 2, granted: 20, spent: 0 });
    expect(await spend(ref, 0)).toEqual({ status: "spent", remaining: 20 });
    await credits.load(ref, { rev: 1, granted: 10, spent: 4 });
    expect(await credits.read(ref)).toEqual({ rev: 2, granted: 20, spent: 0 });
  });

  test("credits set while a pod spends: nothing is spent between closing and loading, and nothing is lost", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 1_000, spent: 0 });
    const spending = Array.from({ length: 200 }, () => spend(ref));
    const closed = await credits.suspend(ref);
    const late = await spend(ref);
    await credits.load(ref, { rev: 2, granted: 50, spent: 0 });
    const outcomes = await Promise.all(spending);
    const spentBefore = outcomes.filter((outcome) => outcome?.status === "spent").length;
    expect(late).toEqual({ status: "unknown" });
    const after = await credits.read(ref);
    expect(after).toMatchObject({ rev: 2, granted: 50 });
    expect((closed?.spent ?? 0) + (after?.spent ?? 0)).toBe(spentBefore);
  });

  test("what was spent from is dirty until that very number was written down", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 10, spent: 0 });
    expect(await credits.listDirty(ref.workspaceId, 10)).toEqual([]);
    await spend(ref, 0);
    expect(await credits.listDirty(ref.workspaceId, 10)).toEqual([]);
    await spend(ref, 2);
    const [seen] = await credits.listDirty(ref.workspaceId, 10);
    expect(seen).toEqual({ ref, counter: { rev: 1, granted: 10, spent: 2 } });
    await spend(ref, 1);
    await credits.clearDirty(ref, { rev: 1, granted: 10, spent: 2 });
    expect(await credits.listDirty(ref.workspaceId, 10)).toHaveLength(1);
    await credits.clearDirty(ref, { rev: 1, granted: 10, spent: 3 });
    expect(await credits.listDirty(ref.workspaceId, 10)).toEqual([]);
  });

  test("a removed counter is gone, with its mark", async () => {
    const ref = aKey();
    await credits.load(ref, { rev: 1, granted: 10, spent: 0 });
    await spend(ref);
    await credits.remove(ref);
    expect(await credits.read(ref)).toBeUndefined();
    expect(await credits.listDirty(ref.workspaceId, 10)).toEqual([]);
  });

  test("closing all of a workspace stops its spenders and nobody else's", async () => {
    const ref = aKey();
    const other = { ...ref, keyId: aName("key") };
    const elsewhere = aKey();
    for (const each of [ref, other, elsewhere]) await credits.load(each, { rev: 1, granted: 10, spent: 1 });
    await credits.closeAll(ref.workspaceId);
    expect(await spend(ref)).toEqual({ status: "unknown" });
    expect(await spend(other)).toEqual({ status: "unknown" });
    expect(await spend(elsewhere)).toEqual({ status: "spent", remaining: 8 });
    await credits.load(ref, { rev: 1, granted: 10, spent: 5 });
    expect(await spend(ref)).toEqual({ status: "spent", remaining: 4 });
  });
});
