import { afterEach, expect, test } from "vitest";
import type { LimitCharge } from "../../core/charges.ts";
import { waitFor } from "../../test/harness/wait.ts";
import { counterName } from "./memory.ts";
import { OutageCounts } from "./outage.ts";
import type { Synced, SyncItem } from "./sync.ts";
import { withAmounts } from "./sync.ts";

const HOUR = 3_600_000;
const NOW = 500_000 * HOUR + 1_000;

const aCharge = (changes: Partial<LimitCharge> = {}): LimitCharge => ({
  workspaceId: "ws_1",
  scope: { kind: "name", value: "requests" },
  identifier: "key_1",
  limit: 10,
  durationMs: HOUR,
  cost: 1,
  accuracy: "strict",
  ...changes,
});

/** Shared totals that can become unavailable and lose a reply. */
class Totals {
  readonly counts = new Map<string, Synced["counts"][number]>();
  state: "away" | "there" | "silent" = "away";
  calls = 0;

  readonly sync = async (items: readonly SyncItem[]): Promise<Synced | undefined> => {
    this.calls += 1;
    if (this.state === "away") return undefined;
    for (const item of items) {
      const counts = withAmounts(this.counts.get(item.key), [item]);
      if (counts !== undefined) this.counts.set(item.key, counts);
    }
    if (this.state === "silent") throw new Error("no reply");
    return {
      nowMs: NOW,
      counts: items.map(({ key }) => this.counts.get(key) ?? { window: 0, current: 0, previous: 0 }),
    };
  };
}

const opened: OutageCounts[] = [];
afterEach(() => {
  for (const counts of opened.splice(0)) counts.close();
});
function open(totals: Totals): OutageCounts {
  const counts = new OutageCounts({ keyOf: counterName, sync: totals.sync, everyMs: 2 });
  opened.push(counts);
  return counts;
}

test("charges admitted during an outage are added to Redis after recovery", async () => {
  const totals = new Totals();
  const [here, there] = [open(totals), open(totals)];
  totals.counts.set(counterName(aCharge()), { window: 500_000, current: 4, previous: 0 });
  for (let i = 0; i < 5; i++) here.add([aCharge()], NOW);
  await waitFor("a try in vain", () => totals.calls > 1);
  for (let i = 0; i < 5; i++) here.add([aCharge()], NOW);
  for (let i = 0; i < 7; i++) there.add([aCharge()], NOW);
  const another = aCharge({ workspaceId: "ws_2" });
  here.add([another], NOW);
  totals.state = "there";
  await waitFor("the totals", () => totals.counts.get(counterName(aCharge()))?.current === 21);
  await waitFor("what is over", () => here.overAdmission.units + there.overAdmission.units >= 11);
  expect(here.overAdmission.units + there.overAdmission.units).toBe(11);
  expect(Math.max(here.overAdmission.largestShare, there.overAdmission.largestShare)).toBeCloseTo(1.1);
  expect(totals.counts.get(counterName(another))?.current).toBe(1);
  const { calls } = totals;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(totals.calls).toBe(calls);
});

test("an outage charge whose reply was lost is not added to Redis again", async () => {
  const totals = new Totals();
  const counts = open(totals);
  totals.state = "silent";
  counts.add([aCharge({ cost: 20 })], NOW);
  await waitFor("it was sent", () => totals.calls === 1);
  totals.state = "there";
  counts.add([aCharge({ cost: 1 })], NOW);
  await waitFor("the next one", () => totals.calls === 2);
  expect(totals.counts.get(counterName(aCharge()))?.current).toBe(21);
  await waitFor("its own part alone", () => counts.overAdmission.units === 1);
});

test("outage tracking omits expired windows and charges without cost", async () => {
  const totals = new Totals();
  const counts = open(totals);
  counts.add([aCharge({ cost: 3 })], NOW - 2 * HOUR);
  counts.add([aCharge({ cost: 2 })], NOW - HOUR);
  counts.add([aCharge({ cost: 1 }), aCharge({ identifier: "free", cost: 0 })], NOW);
  totals.state = "there";
  await waitFor("the totals", () => totals.counts.size > 0);
  expect([...totals.counts.entries()]).toEqual([
    [counterName(aCharge()), { window: 500_000, current: 1, previous: 2 }],
  ]);
  expect(counts.overAdmission).toMatchObject({ units: 0, largestShare: 0 });
});

test("outage tracking keeps only the last two windows per limit", async () => {
  let tries = 0;
  let isThere = false;
  const sent: SyncItem[] = [];
  const counts = new OutageCounts({
    keyOf: counterName,
    sync: async (items) => {
      tries += 1;
      if (!isThere) return undefined;
      sent.push(...items);
      return { nowMs: NOW, counts: items.map(({ window, amount }) => ({ window, current: amount, previous: 0 })) };
    },
    everyMs: 2,
  });
  opened.push(counts);
  const often = aCharge({ durationMs: 1_000 });
  for (let i = 0; i < 200; i++) {
    counts.add([often], NOW + i * 3_000);
    if (i % 50 === 49) await waitFor("a try in vain", () => tries >= (i + 1) / 50);
  }
  isThere = true;
  await waitFor("what is sent", () => sent.length > 0);
  const last = Math.floor((NOW + 199 * 3_000) / 1_000);
  expect(sent).toEqual([{ key: counterName(often), durationMs: 1_000, window: last, amount: 1 }]);
});
