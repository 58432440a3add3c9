import { beforeEach, describe, expect, test } from "vitest";
import { AHEAD_MAX_MS, Freshness } from "./freshness.ts";

let storeMs: number | undefined;
let monotonicMs: number;
let freshness: Freshness;

beforeEach(() => {
  [storeMs, monotonicMs] = [1_760_000_000_000, 7_000];
  freshness = new Freshness({ storeNowMs: () => storeMs, monotonicMs: () => monotonicMs });
});

/** Advances both clocks. */
function pass(ms: number): void {
  monotonicMs += ms;
  if (storeMs !== undefined) storeMs += ms;
}

const now = (): number => storeMs ?? 0;
const lagging = (...entries: [string, number][]) => new Map(entries);

describe("the age of the data", () => {
  test("staleness is unknown before the first heartbeat, then grows from the heartbeat time", () => {
    expect(freshness.stalenessMs()).toBe(Number.POSITIVE_INFINITY);
    freshness.observe(now() - 300);
    pass(1_000);
    expect(freshness.stalenessMs()).toBe(1_300);
    expect(freshness.stalenessMs("ws_any")).toBe(1_300);
  });

  test("staleness ignores a heartbeat with an earlier time than the last one", () => {
    freshness.observe(now() - 300);
    freshness.observe(now() - 9_000);
    expect(freshness.stalenessMs()).toBe(300);
  });

  test("staleness is unknown until the Redis clock is known", () => {
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
  test("staleness does not shrink when the clock is set back without heartbeats", () => {
    freshness.observe(now());
    storeMs = now() - 20_000;
    for (const sinceMs of [1_000, 10_000, 20_000, 40_000]) {
      pass(sinceMs - (monotonicMs - 7_000));
      expect(freshness.stalenessMs()).toBe(sinceMs);
    }
  });

  test("heartbeats count immediately after the Redis clock is set back", () => {
    freshness.observe(now());
    storeMs = now() - 20_000;
    pass(3_000);
    freshness.observe(now() - 200);
    expect(freshness.stalenessMs()).toBe(200);
    pass(1_000);
    expect(freshness.stalenessMs()).toBe(1_200);
  });

  test("a Redis clock that runs ahead only increases staleness", () => {
    freshness.observe(now());
    storeMs = now() + 20_000;
    expect(freshness.stalenessMs()).toBe(20_000);
    freshness.observe(now() - 100);
    expect(freshness.stalenessMs()).toBe(100);
  });

  test("staleness includes the time during which the machine was suspended", () => {
    freshness.observe(now());
    storeMs = now() + 600_000;
    expect(freshness.stalenessMs()).toBe(600_000);
  });
});

describe("a heartbeat from the future", () => {
  test("a heartbeat from the future is rejected, and the next valid one counts", () => {
    freshness.observe(now() - 4_000);
    expect(freshness.observe(now() + AHEAD_MAX_MS + 1)).toBe(false);
    expect(freshness.observe(now() + 1e12)).toBe(false);
    expect(freshness.stalenessMs()).toBe(4_000);
    expect(freshness.observe(now() - 10)).toBe(true);
    expect(freshness.stalenessMs()).toBe(10);
  });

  test("a heartbeat slightly in the future counts as now", () => {
    expect(freshness.observe(now() + AHEAD_MAX_MS)).toBe(true);
    expect(freshness.stalenessMs()).toBe(0);
    pass(30_000);
    expect(freshness.stalenessMs()).toBe(30_000);
  });
});

describe("workspaces that lag behind the others", () => {
  test("lagging workspaces have their own staleness, and the overall staleness is the maximum", () => {
    freshness.observe(now(), lagging(["ws_a", now() - 50_000], ["ws_b", now() - 500]));
    pass(100);
    expect(["ws_a", "ws_b", "ws_c"].map((id) => freshness.stalenessMs(id))).toEqual([50_100, 600, 100]);
    expect(freshness.stalenessMs()).toBe(50_100);
    expect(freshness.ofStream()).toEqual({ ms: 100, laggingWorkspaces: 2 });
  });

  test("a lagging workspace keeps its staleness from the last delivered change", () => {
    freshness.observe(now());
    pass(1_000);
    freshness.observe(now(), lagging(["ws_a", now() - 50_000]));
    expect(freshness.stalenessMs("ws_a")).toBe(1_000);
    pass(1_000);
    freshness.observe(now(), lagging(["ws_a", now() - 52_000]));
    expect(freshness.stalenessMs("ws_a")).toBe(2_000);
    expect(freshness.stalenessMs("ws_b")).toBe(0);
  });

  test("a workspace stops lagging with the first heartbeat that omits it", () => {
    freshness.observe(now(), lagging(["ws_a", now() - 50_000], ["ws_b", now() - 40_000]));
    pass(1_000);
    freshness.observe(now(), lagging(["ws_b", now() - 41_000]));
    expect(freshness.stalenessMs("ws_a")).toBe(0);
    expect(freshness.stalenessMs("ws_b")).toBe(41_000);
    expect(freshness.ofStream().laggingWorkspaces).toBe(1);
    freshness.observe(now());
    expect(freshness.ofStream().laggingWorkspaces).toBe(0);
  });

  test("a heartbeat from the future does not end the lag of a workspace", () => {
    freshness.observe(now(), lagging(["ws_a", now() - 50_000]));
    freshness.observe(now() + 60_000);
    expect(freshness.stalenessMs("ws_a")).toBe(50_000);
  });
});
