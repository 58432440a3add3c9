import { describe, expect, test } from "vitest";
import { ApiError } from "./api-error.ts";
import { type BatchState, runBatch, startOf } from "./run-batch.ts";

const ITEMS = Array.from({ length: 20 }, (_, n) => n);
const refusal = (status: number, more: { kind?: string; retryAfterMs?: number } = {}): ApiError =>
  new ApiError({ status, kind: "any", detail: `status ${status}`, ...more });

/** Runs a batch on a clock of its own. `act` is called with the item and with how often it has been called for it. */
async function run(
  act: (item: number, tries: number) => void,
  { signal = new AbortController().signal, from = startOf(ITEMS) as BatchState<number> } = {},
) {
  const calls: number[] = [];
  const states: BatchState<number>[] = [];
  let now = 0;
  let running = 0;
  let most = 0;
  const ended = runBatch(from, {
    act: async (item) => {
      calls.push(item);
      most = Math.max(most, ++running);
      await Promise.resolve();
      running -= 1;
      act(item, calls.filter((one) => one === item).length);
    },
    report: (state) => void states.push(state),
    signal,
    clock: {
      nowMs: () => now,
      sleep: async (ms) => {
        const until = now + ms;
        await Promise.resolve();
        now = Math.max(now, until);
      },
    },
  });
  const error = await ended.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  const last = states.at(-1);
  if (last === undefined) throw new Error("nothing was reported");
  return { calls, states, last, error, waitedMs: now, most };
}

test("runBatch makes one call for each item, at most four at a time", async () => {
  const { calls, last, most, error } = await run(() => undefined);
  expect(calls.toSorted((a, b) => a - b)).toEqual(ITEMS);
  expect(last).toEqual({ done: 20, failed: [], left: [], waitsUntilMs: undefined });
  expect([most, error]).toEqual([4, undefined]);
});

test("runBatch lists items that the server rejects and continues with the others", async () => {
  const { last, error } = await run((item) => {
    if (item === 3) throw refusal(404, { kind: "key_not_found" });
    if (item === 7) throw refusal(409, { kind: "managed_by_manifest" });
  });
  expect(last.failed.toSorted((a, b) => a.item - b.item)).toEqual([
    { item: 3, problem: "status 404" },
    { item: 7, problem: "status 409" },
  ]);
  expect([last.done, last.left, error]).toEqual([18, [], undefined]);
});

test("runBatch delays all calls for as long as the server requests", async () => {
  const { last, states, waitedMs, calls } = await run((item, tries) => {
    if (item < 4 && tries === 1) throw refusal(429, { retryAfterMs: 7000 });
  });
  expect(states.some(({ waitsUntilMs }) => waitsUntilMs === 7000)).toBe(true);
  expect([last.done, waitedMs, calls.length]).toEqual([20, 7000, 24]);
});

describe("runBatch ends early and keeps the rest:", () => {
  test.each([
    ["a wait that is too long", refusal(429, { retryAfterMs: 3_600_000 })],
    ["a session that has ended", refusal(401)],
    ["invalid input", refusal(400)],
    ["a role that does not exist", refusal(404, { kind: "role_not_found" })],
    ["an error of the page", new Error("a bug")],
  ])("%s", async (_, problem) => {
    const { last, error, calls } = await run((item) => {
      if (item === 5) throw problem;
    });
    expect(error).toBe(problem);
    expect(calls.length).toBeLessThan(12);
    expect(last.done + last.left.length).toBe(20);
    expect(last.left).toContain(5);
    const again = await run(() => undefined, { from: last });
    expect(again.calls.toSorted((a, b) => a - b)).toEqual(last.left);
    expect(again.last).toMatchObject({ done: 20, left: [], failed: [] });
  });

  test("runBatch ends early if the server does not respond to four tries", async () => {
    const { last, error, calls } = await run(() => {
      throw refusal(0);
    });
    expect([(error as ApiError).status, last.left.length]).toEqual([0, 20]);
    expect(calls.length).toBeLessThanOrEqual(16);
  });
});

test("runBatch lists an item with an internal error after four tries", async () => {
  const { last, calls } = await run((item) => {
    if (item === 2) throw refusal(500);
  });
  expect(calls.filter((item) => item === 2)).toHaveLength(4);
  expect([last.done, last.failed, last.left]).toEqual([19, [{ item: 2, problem: "status 500" }], []]);
});

test("runBatch finishes its pending calls when it is stopped, and sends no others", async () => {
  const stop = new AbortController();
  const { last, error, calls } = await run((item) => item === 5 && stop.abort(), { signal: stop.signal });
  expect(error).toBeUndefined();
  expect(last.done).toBe(calls.length);
  expect(last.left).toEqual(ITEMS.filter((item) => !calls.includes(item)));
  expect(calls.length).toBeLessThan(12);
});
