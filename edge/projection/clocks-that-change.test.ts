import { expect, test } from "vitest";
import { ClockEstimate } from "../redis/clock-estimate.ts";
import { Freshness } from "./freshness.ts";

/*
 * Failovers between machines with different clocks, in simulated time. For any order of clock measurements and heartbeats, staleness is
 * never underestimated.
 */

/** Returns a seeded generator of numbers in [0, 1). */
function makeRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const MINUTES = 6;

/** Returns by how much the reported age was below the true age at most, and by how much above it long after the last failover. */
function play(seed: number): { underMs: number; overMs: number } {
  const random = makeRandom(seed);
  const upTo = (ms: number) => Math.floor(random() * ms);
  const estimate = new ClockEstimate();
  let nowMs = 50_000;
  const freshness = new Freshness({ storeNowMs: () => estimate.nowMs(nowMs), monotonicMs: () => nowMs });
  let offsetMs = 1_760_000_000_000;
  const measure = () => {
    const [thereMs, backMs] = [upTo(5), upTo(5)];
    estimate.take({ sentMs: nowMs - thereMs - backMs, receivedMs: nowMs, storeMs: nowMs - backMs + offsetMs });
  };
  const onTheStream: { arrivesAtMs: number; trueMs: number; asOfMs: number }[] = [];
  let [beatAtMs, failoverAtMs, changedAtMs] = [nowMs, nowMs + 20_000 + upTo(20_000), 0];
  /** A connected reader reads the stream after it has measured the clock. */
  let [measureAtMs, connectedAtMs] = [nowMs, nowMs];
  let knownOfMs: number | undefined;
  let [underMs, overMs] = [0, 0];

  for (const endMs = nowMs + MINUTES * 60_000; nowMs < endMs; nowMs += 50) {
    if (nowMs >= failoverAtMs) {
      offsetMs += (random() < 0.6 ? -1 : 1) * upTo(random() < 0.5 ? 8_000 : 90_000);
      changedAtMs = nowMs;
      connectedAtMs = nowMs + upTo(5_000);
      measureAtMs = nowMs + upTo(10_000);
      failoverAtMs = nowMs + 30_000 + upTo(60_000);
    }
    if (nowMs >= beatAtMs) {
      const trueMs = nowMs - upTo(300);
      const takesMs = random() < 0.1 ? upTo(6_000) : upTo(100);
      onTheStream.push({ arrivesAtMs: nowMs + takesMs, trueMs, asOfMs: trueMs + offsetMs });
      // Sometimes no relay runs for a while.
      beatAtMs = nowMs + (random() < 0.05 ? upTo(20_000) : 1_000);
    }
    const connects = nowMs - 50 < connectedAtMs && nowMs >= connectedAtMs;
    if (connects || nowMs >= measureAtMs) {
      measure();
      measureAtMs = nowMs + 10_000;
    }
    // Entries of a stream are read in order.
    for (;;) {
      const [next] = onTheStream;
      if (next === undefined || next.arrivesAtMs > nowMs || nowMs < connectedAtMs) break;
      onTheStream.shift();
      if (freshness.observe(next.asOfMs)) knownOfMs = Math.max(knownOfMs ?? 0, next.trueMs);
    }
    if (knownOfMs === undefined) continue;
    const tooMuchMs = freshness.stalenessMs() - (nowMs - knownOfMs);
    underMs = Math.max(underMs, -tooMuchMs);
    if (nowMs - changedAtMs > 30_000) overMs = Math.max(overMs, tooMuchMs);
  }
  return { underMs, overMs };
}

test("staleness is never underestimated after clock changes and recovers 30 s after failover", () => {
  const played = Array.from({ length: 60 }, (_, i) => ({ seed: 7 + 1_009 * i, ...play(7 + 1_009 * i) }));
  expect(played.filter(({ underMs }) => underMs > 0)).toEqual([]);
  expect(played.filter(({ overMs }) => overMs > 10)).toEqual([]);
});
