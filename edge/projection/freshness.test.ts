import { beforeEach, describe, expect, test } from "vitest";
import { AHEAD_MAX_MS, Freshness } from "./freshness.ts";

let storeMs: number | undefined;
let monotonicMs: number;
let freshness: Freshness;

beforeEach(() => {
  [storeMs, monotonicMs] = [1_760_000_000_000, 7_000];
  freshness = new Freshness({ storeNowMs: () => storeMs, monotonicMs: () => monotonicMs });
});

/** Both clocks advance. */
function pass(ms: number): void {
  monotonicMs += ms;
  if (storeMs !== undefined) storeMs += ms;
}

const now = (): number => storeMs ?? 0;
const lagging = (...entries: [string, number][]) => new Map(entries);

describe("the age of the data", () => {
  test("is unknown before the first heartbeat, then grows from the time that it names", () => {
    expect(freshness.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    freshness.observe(now() - 300);
    pass(1_000);
    expect(freshness.stalenessMs()).toBe(1_300);
    expect(freshness.stalenessMs("ws_any")).toBe(1_300);
  });

  test("does not grow by a heartbeat that names an older time", () => {
    freshness.observe(now() - 300);
    freshness.observe(now() - 9_000);
    expect(freshness.stalenessMs()).toBe(300);
  });

  test("is computed once the store's clock is known, and not before", () => {
    const before = now();
    storeMs = undefined;
    expect(freshness.observe(before - 100)).toBe(true);
    expect(freshness.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    storeMs = before;
    expect(freshness.stalenessMs()).toBe(100);
    storeMs = undefined;
    freshness.observe(before + 60_000);
    storeMs = before;
    expect(freshness.stalenessMs()).toBe(100);
  });
});

describe("a clock that changes", () => {
  test("set back while no heartbeat arrives does not make the data look fresher", () => {
    freshness.observe(now());
    storeMs = now() - 20_000;
    for (const sinceMs of [1_000, 10_000, 20_000, 40_000]) {
      pass(sinceMs - (monotonicMs - 7_000));
      expect(freshness.stalenessMs()).toBe(sinceMs);
    }
  });

  test("set back does not prevent heartbeats of the new clock from counting at once, although they name earlier times", () => {
    freshness.observe(now());
    storeMs = now() - 20_000;
    pass(3_000);
    freshness.observe(now() - 200);
    expect(freshness.stalenessMs()).toBe(200);
    pass(1_000);
    expect(freshness.stalenessMs()).toBe(1_200);
  });

  test("that is ahead makes earlier data look staler, never fresher", () => {
    freshness.observe(now());
    storeMs = now() + 20_000;
    expect(freshness.stalenessMs()).toBe(20_000);
    freshness.observe(now() - 100);
    expect(freshness.stalenessMs()).toBe(100);
  });

  test("counts the time in which the machine slept and its monotonic clock stood still", () => {
    freshness.observe(now());
    storeMs = now() + 600_000;
    expect(freshness.stalenessMs()).toBe(600_000);
  });
});

describe("a heartbeat from the future", () => {
  test("is refused, and the next true one counts", () => {
    freshness.observe(now() - 4_000);
    expect(freshness.observe(now() + AHEAD_MAX_MS + 1)).toBe(false);
    expect(freshness.observe(now() + 1e12)).toBe(false);
    expect(freshness.stalenessMs()).toBe(4_000);
    expect(freshness.observe(now() - 10)).toBe(true);
    expect(freshness.stalenessMs()).toBe(10);
  });

  test("that is only a little ahead counts as of now, and no longer", () => {
    expect(freshness.observe(now() + AHEAD_MAX_MS)).toBe(true);
    expect(freshness.stalenessMs()).toBe(0);
    pass(30_000);
    expect(freshness.stalenessMs()).toBe(30_000);
  });
});

describe("workspaces that lag behind the others", () => {
  test("have their own age; the overall age is the largest one, and the feed's is that of the others", () => {
    freshness.observe(now(), lagging(["ws_a", now() - 50_000], ["ws_b", now() - 500]));
    pass(100);
    expect(["ws_a", "ws_b", "ws_c"].map((id) => freshness.stalenessMs(id))).toEqual([50_100, 600, 100]);
    expect(freshness.stalenessMs()).toBe(50_100);
    expect(freshness.ofStream()).toEqual({ ms: 100, laggingWorkspaces: 2 });
  });

  test("keep the age from what was delivered before they lagged", () => {
    freshness.observe(now());
    pass(1_000);
    freshness.observe(now(), lagging(["ws_a", now() - 50_000]));
    expect(freshness.stalenessMs("ws_a")).toBe(1_000);
    pass(1_000);
    freshness.observe(now(), lagging(["ws_a", now() - 52_000]));
    expect(freshness.stalenessMs("ws_a")).toBe(2_000);
    expect(freshness.stalenessMs("ws_b")).toBe(0);
  });

  test("are like the others again with the first heartbeat that does not name them", () => {
    freshness.observe(now(), lagging(["ws_a", now() - 50_000], ["ws_b", now() - 40_000]));
    pass(1_000);
    freshness.observe(now(), lagging(["ws_b", now() - 41_000]));
    expect(freshness.stalenessMs("ws_a")).toBe(0);
    expect(freshness.stalenessMs("ws_b")).toBe(41_000);
    expect(freshness.ofStream().laggingWorkspaces).toBe(1);
    freshness.observe(now());
    expect(freshness.ofStream().laggingWorkspaces).toBe(0);
  });

  test("are not forgotten because a heartbeat from the future does not name them", () => {
    freshness.observe(now(), lagging(["ws_a", now() - 50_000]));
    freshness.observe(now() + 60_000);
    expect(freshness.stalenessMs("ws_a")).toBe(50_000);
  });
});
