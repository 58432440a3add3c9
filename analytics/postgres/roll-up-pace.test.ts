import { expect, test } from "vitest";
import { waitAfter } from "./roll-up-pace.ts";

test.each([
  { ranMs: 0, waitMs: 1_000 },
  { ranMs: 300, waitMs: 1_000 },
  { ranMs: 500, waitMs: 1_500 },
  { ranMs: 5_000, waitMs: 15_000 },
  { ranMs: 60_000, waitMs: 30_000 },
])("after a roll-up of $ranMs ms the next one waits $waitMs ms", ({ ranMs, waitMs }) =>
  expect(waitAfter(ranMs)).toBe(waitMs),
);
