import { expect, test } from "vitest";
import { aKeyView, aRatelimitRecord } from "../../../test/builders/key-view.ts";
import { KeyVerification } from "./key-verification.ts";
import type { Body } from "./verify-schemas.ts";

type VerifyCall = ConstructorParameters<typeof KeyVerification>[0];

/** What a plan needs of a call: its body. */
const planOf = (view: ReturnType<typeof aKeyView>, body: Partial<Body>) =>
  new KeyVerification({ body: { key: "sk_1", ...body }, caller: {}, origin: {} } as unknown as VerifyCall).plan(view);

const limit = aRatelimitRecord("calls", { autoApply: true });

test("key verifications without named limits share one cached limit list", () => {
  const view = aKeyView({ key: { ratelimits: [limit], limited: true } });
  const [plain, costly, free] = [
    planOf(view, {}),
    planOf(view, { credits: { cost: 7 } }),
    planOf(view, { credits: { cost: 0 } }),
  ];
  expect([plain, costly, free].map(({ credits }) => credits?.cost)).toEqual([1, 7, 0]);
  expect(costly.limits).toBe(plain.limits);
  expect(free.limits).toBe(plain.limits);
  expect(planOf(view, { ratelimits: [{ name: "calls", cost: 2 }] }).limits).not.toBe(plain.limits);
});

test("key without a credit limit is charged no credits, even if the call has a cost", () => {
  expect(planOf(aKeyView({ key: { ratelimits: [limit] } }), { credits: { cost: 7 } }).credits).toBeUndefined();
});
