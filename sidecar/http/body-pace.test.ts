import { expect, test } from "vitest";
import { BodyPace } from "./body-pace.ts";

const LIMITS = { idleMs: 10_000, bytesPerSecondMin: 240 };
/** Checks once a second, as the gate does, and returns the second in which the body was too slow. */
function firstTooSlow(pace: BodyPace, seconds: number, each: (s: number) => boolean): number | undefined {
  for (let s = 1; s <= seconds; s++) if (pace.isTooSlow(s * 1000, each(s))) return s;
  return undefined;
}

test.each([
  { name: "no byte ends it after the idle time", bytes: () => 0, until: 10 },
  { name: "a byte a second ends it at the end of a window", bytes: () => 1, until: 10 },
  { name: "just below the minimum ends it", bytes: () => 239, until: 10 },
  { name: "the minimum is enough", bytes: () => 240, until: undefined },
  { name: "a burst in every window is enough", bytes: (s: number) => (s % 10 === 5 ? 2_400 : 0), until: undefined },
  { name: "a fast beginning counts only for its own window", bytes: (s: number) => (s === 1 ? 1e9 : 1), until: 20 },
])("request body is aborted only below the minimum pace: $name", ({ bytes, until }) => {
  const pace = new BodyPace(LIMITS, 0);
  const found = firstTooSlow(pace, 120, (s) => {
    if (bytes(s) > 0) pace.moved(bytes(s), s * 1000);
    return true;
  });
  expect(found).toBe(until);
});

test("time in which the app does not read is excluded from the body pace", () => {
  const pace = new BodyPace(LIMITS, 0);
  expect(firstTooSlow(pace, 300, () => false)).toBeUndefined();
  pace.waitFrom(300_000);
  for (let s = 301; s <= 309; s++) expect([s, pace.isTooSlow(s * 1000, true)]).toEqual([s, false]);
  expect(pace.isTooSlow(310_000, true)).toBe(true);
});

test("without a minimum rate, only an idle body times out", () => {
  const pace = new BodyPace({ ...LIMITS, bytesPerSecondMin: 0 }, 0);
  const drip = (s: number) => {
    if (s % 9 === 0) pace.moved(1, s * 1000);
    return true;
  };
  expect(firstTooSlow(pace, 1_000, drip)).toBeUndefined();
});
