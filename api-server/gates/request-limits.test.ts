import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { PublicError } from "../../core/errors.ts";
import { DEFAULT_BOUNDS, RequestLimits } from "./request-limits.ts";

function open() {
  const clock = { ms: 1_000_000 };
  return { bounds: new RequestLimits({ ...DEFAULT_BOUNDS, nowMs: () => clock.ms }), clock };
}

/** Seconds to wait; undefined when the address may ask. */
async function refusedFor(ask: () => unknown): Promise<number | undefined> {
  try {
    await ask();
    return undefined;
  } catch (error) {
    if (!(error instanceof PublicError) || error.kind !== "gate_credentials_limited") throw error;
    return Number(error.headers["Retry-After"]);
  }
}

const hang = () => new Promise<never>(() => undefined);
const review = async () => "reviewed";

test("concurrent requests from one gate address are limited, so slots remain for others", async () => {
  const { bounds } = open();
  const told: (number | undefined)[] = [];
  for (let i = 0; i < 50; i++) void refusedFor(() => bounds.ask("a", hang)).then((seconds) => told.push(seconds));
  await sleep(0);
  expect(told).toEqual(Array.from({ length: 45 }, () => 1));
  for (const other of ["b", "c", "d"]) expect(await bounds.ask(other, review)).toBe("reviewed");
});

test("failed gate request releases its slot", async () => {
  const { bounds } = open();
  for (let i = 0; i < 30; i++) {
    await expect(bounds.ask("a", () => Promise.reject(new Error("no answer")))).rejects.toThrow("no answer");
  }
  expect(await bounds.ask("a", review)).toBe("reviewed");
});

test("address that sends invalid gate tokens is throttled for a minute, but other addresses are not", async () => {
  const { bounds, clock } = open();
  let reviews = 0;
  const sendForged = () =>
    refusedFor(async () => {
      await bounds.ask("a", async () => (reviews += 1));
      bounds.tokenRefused("a");
    });
  for (let i = 0; i < 500; i++) await sendForged();
  expect(reviews).toBe(10);
  clock.ms += 20_000;
  expect(await sendForged()).toBe(40);
  expect(await refusedFor(() => bounds.ask("b", review))).toBe(undefined);
  clock.ms += 40_000;
  expect(await sendForged()).toBe(undefined);
});

test("all gates of a large node can repeat their requests from one address", async () => {
  const { bounds } = open();
  // 80 gates, each every 5 s.
  for (let i = 0; i < 80 * 12; i++) expect(await refusedFor(() => bounds.ask("node", review))).toBe(undefined);
});

test("pod that requests credentials in a loop is throttled, and eventually its address is too", async () => {
  const { bounds } = open();
  const loop = () =>
    refusedFor(async () => {
      await bounds.ask("a", review);
      bounds.issue("a", "uid-1");
    });
  const responses = [];
  for (let i = 0; i < 40; i++) responses.push(await loop());
  expect(responses.filter((one) => one === undefined)).toHaveLength(10);
  expect(await refusedFor(() => bounds.ask("a", review))).toBe(60);
});
