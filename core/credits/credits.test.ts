import { describe, expect, test } from "vitest";
import { applyCreditsUpdate, type CreditsState, type CreditsUpdate, checkRefill } from "./credits.ts";

const daily = { interval: "daily", amount: 5 } as const;
const monthly = { interval: "monthly", amount: 7, refillDay: 31 } as const;
const limited: CreditsState = { remaining: 10, refill: daily };
const plain: CreditsState = { remaining: 10 };
const unlimited: CreditsState = { remaining: null };
const refused = { error: expect.any(String) };

describe("the table of changes", () => {
  test.each<{ name: string; from?: CreditsState; update: CreditsUpdate; to: unknown }>([
    { name: "credits not given keep all", update: undefined, to: limited },
    { name: "credits null make the key unlimited and clear the refill", update: null, to: unlimited },
    { name: "an empty object keeps all", update: {}, to: limited },
    { name: "an empty object keeps an unlimited key", from: unlimited, update: {}, to: unlimited },
    { name: "remaining n keeps the refill", update: { remaining: 3 }, to: { remaining: 3, refill: daily } },
    { name: "remaining 0 is a number like others", update: { remaining: 0 }, to: { remaining: 0, refill: daily } },
    { name: "remaining n limits an unlimited key", from: unlimited, update: { remaining: 3 }, to: { remaining: 3 } },
    { name: "remaining null clears the refill", update: { remaining: null }, to: unlimited },
    {
      name: "a refill keeps what remains",
      from: plain,
      update: { refill: monthly },
      to: { remaining: 10, refill: monthly },
    },
    { name: "a refill on an unlimited key is refused", from: unlimited, update: { refill: daily }, to: refused },
    { name: "refill null clears it", update: { refill: null }, to: plain },
    {
      name: "remaining n and a refill set both",
      from: unlimited,
      update: { remaining: 4, refill: daily },
      to: { remaining: 4, refill: daily },
    },
    { name: "remaining null and a refill are refused", update: { remaining: null, refill: daily }, to: refused },
    {
      name: "remaining null and refill null make it unlimited",
      update: { remaining: null, refill: null },
      to: unlimited,
    },
    {
      name: "a monthly refill without a day is refused",
      update: { refill: { interval: "monthly", amount: 1 } },
      to: refused,
    },
    { name: "a daily refill with a day is refused", update: { refill: { ...daily, refillDay: 3 } }, to: refused },
    { name: "set n keeps the refill", update: { operation: "set", value: 2 }, to: { remaining: 2, refill: daily } },
    {
      name: "set null makes it unlimited and clears the refill",
      update: { operation: "set", value: null },
      to: unlimited,
    },
    { name: "set without a value does too", update: { operation: "set" }, to: unlimited },
    { name: "increment adds", update: { operation: "increment", value: 2 }, to: { remaining: 12, refill: daily } },
    { name: "increment 0 is allowed", update: { operation: "increment", value: 0 }, to: limited },
    {
      name: "increment stops before 2^53",
      update: { operation: "increment", value: Number.MAX_SAFE_INTEGER - 10 },
      to: { remaining: Number.MAX_SAFE_INTEGER, refill: daily },
    },
    {
      name: "increment beyond 2^53 − 1 is refused",
      update: { operation: "increment", value: Number.MAX_SAFE_INTEGER - 9 },
      to: refused,
    },
    { name: "decrement takes away", update: { operation: "decrement", value: 4 }, to: { remaining: 6, refill: daily } },
    {
      name: "decrement stops at 0",
      update: { operation: "decrement", value: 11 },
      to: { remaining: 0, refill: daily },
    },
    {
      name: "increment of an unlimited key is refused",
      from: unlimited,
      update: { operation: "increment", value: 1 },
      to: refused,
    },
    {
      name: "decrement of an unlimited key is refused",
      from: unlimited,
      update: { operation: "decrement", value: 1 },
      to: refused,
    },
    { name: "increment null is refused", update: { operation: "increment", value: null }, to: refused },
    { name: "decrement without a value is refused", update: { operation: "decrement" }, to: refused },
  ])("credits update has the expected result: $name", ({ from = limited, update, to }) =>
    expect(applyCreditsUpdate(from, update)).toEqual(to),
  );

  test("credits update does not mutate the previous state", () => {
    const before = structuredClone(limited);
    applyCreditsUpdate(limited, { remaining: 1, refill: monthly });
    expect(limited).toEqual(before);
  });
});

test.each([
  { name: "no refill is fine for an unlimited key", state: unlimited, fine: true },
  { name: "a daily refill is fine", state: limited, fine: true },
  { name: "a monthly refill with a day is fine", state: { remaining: 1, refill: monthly }, fine: true },
  { name: "a refill of an unlimited key is not", state: { remaining: null, refill: daily }, fine: false },
  {
    name: "a monthly refill needs a day",
    state: { remaining: 1, refill: { interval: "monthly" as const, amount: 1 } },
    fine: false,
  },
  { name: "a daily refill has none", state: { remaining: 1, refill: { ...daily, refillDay: 1 } }, fine: false },
])("refill settings are validated together with the credits: $name", ({ state, fine }) =>
  expect(checkRefill(state) === undefined).toBe(fine),
);
