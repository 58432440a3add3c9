import * as fc from "fast-check";
import { expect, test } from "vitest";
import { DeadlineClock } from "./deadline-clock.ts";

/* Simulated time: `ours` is the local monotonic clock. The Redis clock is `ours + ahead` and may be set during the test. */

const START = 1_000_000;

/** A round trip: the duration of each direction and the remaining timeout of the caller. */
const roundTrip = fc.record({
  pauseMs: fc.integer({ min: 0, max: 9_000 }),
  wayThereMs: fc.double({ min: 0, max: 400, noNaN: true }),
  wayBackMs: fc.double({ min: 0, max: 400, noNaN: true }),
  waitMs: fc.integer({ min: 10, max: 1_000 }),
});
const ahead = fc.integer({ min: 1.5 * 10 ** 12, max: 2 * 10 ** 12 });

test("Redis deadline is never later than the caller's timeout, and at most one reply time earlier", () => {
  fc.assert(
    fc.property(ahead, fc.array(roundTrip, { minLength: 1, maxLength: 20 }), (aheadMs, roundTrips) => {
      const clock = new DeadlineClock();
      let ours = START;
      for (const { pauseMs, wayThereMs, wayBackMs, waitMs } of roundTrips) {
        const sentAtMs = ours + pauseMs;
        const readAtMs = sentAtMs + wayThereMs;
        ours = readAtMs + wayBackMs;
        clock.observe({ sentAtMs, receivedAtMs: ours, storeMs: Math.floor(readAtMs + aheadMs) });
        const deadline = clock.deadlineOf(ours + waitMs, ours) ?? Number.NaN;
        const givesUpAt = ours + waitMs + aheadMs;
        // Doubles of this size have a resolution of a quarter of a microsecond.
        expect(deadline).toBeLessThanOrEqual(givesUpAt + 0.001);
        expect(deadline).toBeGreaterThan(givesUpAt - wayBackMs - 2.001);
      }
    }),
  );
});

test("Redis deadline clock detects a clock change with the first reply", () => {
  fc.assert(
    fc.property(
      ahead,
      roundTrip,
      roundTrip,
      fc.integer({ min: -(10 ** 9), max: 10 ** 9 }),
      (aheadMs, one, two, jumpMs) => {
        fc.pre(Math.abs(jumpMs) > 1_000);
        const clock = new DeadlineClock();
        let ours = START;
        for (const [{ wayThereMs, wayBackMs }, nowAheadMs] of [
          [one, aheadMs],
          [two, aheadMs + jumpMs],
        ] as const) {
          const readAtMs = ours + wayThereMs;
          const receivedAtMs = readAtMs + wayBackMs;
          clock.observe({ sentAtMs: ours, receivedAtMs, storeMs: Math.floor(readAtMs + nowAheadMs) });
          ours = receivedAtMs;
        }
        const givesUpAt = ours + 50 + aheadMs + jumpMs;
        const deadline = clock.deadlineOf(ours + 50, ours) ?? Number.NaN;
        expect(deadline).toBeLessThanOrEqual(givesUpAt + 0.001);
        expect(deadline).toBeGreaterThan(givesUpAt - two.wayBackMs - 2.001);
      },
    ),
  );
});

test("Redis deadline clock is unknown at start, after 20 s without replies and after reconnect", () => {
  const clock = new DeadlineClock();
  expect(clock.deadlineOf(100, 50)).toBeUndefined();
  clock.observe({ sentAtMs: 50, receivedAtMs: 60, storeMs: 1_000_060 });
  expect(clock.deadlineOf(100, 9_000)).toBe(1_000_100);
  expect(clock.deadlineOf(100, 30_100)).toBeUndefined();
  clock.observe({ sentAtMs: 30_200, receivedAtMs: 30_200, storeMs: 1_030_200 });
  clock.forget();
  expect(clock.deadlineOf(30_300, 30_200)).toBeUndefined();
});

test("concurrent Redis clock measurements share one request", async () => {
  const clock = new DeadlineClock();
  let asked = 0;
  const client = {
    time: async () => {
      asked += 1;
      return ["1700000000", "250000"];
    },
  };
  await Promise.all([clock.measure(client), clock.measure(client)]);
  expect(asked).toBe(1);
  expect(clock.deadlineOf(0, performance.now())).toBeLessThanOrEqual(1_700_000_000_250);
});

test("a Redis command rejected after a clock jump is retried once with a new measurement", async () => {
  const clock = new DeadlineClock();
  let aheadMs = 1_700_000_000_000;
  const storeNowMs = () => Math.floor(performance.now() + aheadMs);
  const client = { time: async () => [Math.floor(storeNowMs() / 1000), (storeNowMs() % 1000) * 1000] };
  await clock.measure(client);
  aheadMs += 60_000;
  const deadlines: number[] = [];
  const run = async (deadlineMs: number) => {
    deadlines.push(deadlineMs);
    return storeNowMs() < deadlineMs ? "done" : undefined;
  };
  expect(await clock.inTime(client, { dueMs: performance.now() + 5_000 }, run)).toBe("done");
  expect(deadlines).toHaveLength(2);
  await expect(clock.inTime(client, { dueMs: performance.now() + 5_000 }, async () => undefined)).rejects.toThrow(
    "too late",
  );
  await expect(clock.inTime(client, { dueMs: performance.now() - 1 }, run)).rejects.toThrow("too late");
  expect(deadlines).toHaveLength(2);
});
