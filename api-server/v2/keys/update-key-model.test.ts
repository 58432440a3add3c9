import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { buildTestApp, type TestApp } from "../../test/app.ts";

/*
 * Any sequence of changes to a key, with verifications in between, against a plain model of what the API promises: what is
 * omitted stays, null removes, a value replaces (api-v2.md sections 10.3 and 13.5). The model knows nothing of the code
 * that it is held against.
 */

const SEQUENCES = 100;
const STEPS_MAX = 8;
const FAR = 4_000_000_000_000;

/** What each role grants; also how roles and slugs are spelt, whatever the spelling of a request. */
const ROLES: Readonly<Record<string, readonly string[]>> = {
  Editor: ["role.write", "both.grant"],
  viewer: ["role.read"],
};
const SLUGS = ["Direct.Read", "direct.write", "both.grant"];

let t: TestApp;
let apiId: string;
beforeAll(async () => {
  t = await buildTestApp();
  ({ apiId } = await t.data("apis.createApi", { name: "model" }));
  for (const slug of SLUGS) await t.data("permissions.createPermission", { name: slug, slug });
  for (const [name, permissions] of Object.entries(ROLES)) {
    await t.data("permissions.createRole", { name, permissions });
  }
});
afterAll(() => t.close());

interface Refill {
  readonly interval: "daily" | "monthly";
  readonly amount: number;
  readonly refillDay?: number;
}
interface Ratelimit {
  readonly name: string;
  readonly limit: number;
  readonly duration: number;
  readonly autoApply: boolean;
}
interface CreditsUpdate {
  readonly remaining?: number | null;
  readonly refill?: Refill | null;
}
interface KeyUpdate {
  readonly name?: string | null;
  readonly externalId?: string | null;
  readonly meta?: Readonly<Record<string, unknown>> | null;
  readonly expires?: number | null;
  readonly credits?: CreditsUpdate | null;
  readonly ratelimits?: readonly Ratelimit[] | null;
  readonly enabled?: boolean;
  readonly roles?: readonly string[];
  readonly permissions?: readonly string[];
}
type Step =
  | { readonly do: "updateKey"; readonly body: KeyUpdate }
  | {
      readonly do: "updateCredits";
      readonly body: { readonly operation: "set" | "increment" | "decrement"; readonly value?: number | null };
    }
  | { readonly do: "verifyKey"; readonly cost: number };

interface Model {
  readonly name: string | null;
  readonly externalId: string | null;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly expires: number | null;
  readonly enabled: boolean;
  /** null is unlimited. */
  readonly remaining: number | null;
  readonly refill: Refill | null;
  readonly ratelimits: readonly Ratelimit[];
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
  readonly isUpdated: boolean;
}
const NEW: Model = {
  name: null,
  externalId: null,
  meta: {},
  expires: null,
  enabled: true,
  remaining: null,
  refill: null,
  ratelimits: [],
  roles: [],
  permissions: [],
  isUpdated: false,
};

/** What every other key begins with, so that a refill is there to be kept or cleared. */
const CREDITS = { remaining: 5, refill: { interval: "daily", amount: 3 } } as const;

const orKeep = <T>(given: T | undefined, kept: T): T => (given === undefined ? kept : given);
const spelt = (known: readonly string[], given: readonly string[]): string[] =>
  known.filter((one) => given.some((other) => other.toLowerCase() === one.toLowerCase()));

/** The model afterwards, or the status of the refusal, which changes nothing. */
function afterUpdate(model: Model, body: KeyUpdate): Model | 400 | 404 {
  const credits = creditsAfter(model, body.credits);
  if (credits === 400) return 400;
  if (body.roles?.includes("nobody")) return 404;
  const byName = new Map((body.ratelimits ?? []).map((one) => [one.name, one]));
  return {
    ...credits,
    name: orKeep(body.name, model.name),
    externalId: orKeep(body.externalId, model.externalId),
    meta: orKeep(body.meta, model.meta) ?? {},
    expires: orKeep(body.expires, model.expires),
    enabled: orKeep(body.enabled, model.enabled),
    ratelimits: body.ratelimits === undefined ? model.ratelimits : [...byName.values()],
    roles: body.roles === undefined ? model.roles : spelt(Object.keys(ROLES), body.roles),
    permissions: body.permissions === undefined ? model.permissions : spelt(SLUGS, body.permissions),
    isUpdated: true,
  };
}

function creditsAfter(model: Model, credits: KeyUpdate["credits"]): Model | 400 {
  if (credits === undefined) return model;
  if (credits === null) return { ...model, remaining: null, refill: null };
  const remaining = orKeep(credits.remaining, model.remaining);
  const { refill } = credits;
  if (refill !== undefined && refill !== null) {
    const isMonthly = refill.interval === "monthly";
    if (remaining === null || isMonthly !== (refill.refillDay !== undefined)) return 400;
  }
  return { ...model, remaining, refill: remaining === null ? null : orKeep(refill, model.refill) };
}

function afterOperation(model: Model, { operation, value }: (Step & { do: "updateCredits" })["body"]): Model | 400 {
  const updated = { ...model, isUpdated: true };
  if (operation === "set") {
    return value === null || value === undefined
      ? { ...updated, remaining: null, refill: null }
      : { ...updated, remaining: value };
  }
  if (value === null || value === undefined || model.remaining === null) return 400;
  return { ...updated, remaining: Math.max(0, model.remaining + (operation === "increment" ? value : -value)) };
}

function verdict({ enabled, expires, remaining }: Model, cost: number): { code: string; remaining: number | null } {
  if (!enabled) return { code: "DISABLED", remaining };
  if (expires !== null && expires < FAR) return { code: "EXPIRED", remaining };
  if (remaining === null) return { code: "VALID", remaining };
  return remaining < cost ? { code: "USAGE_EXCEEDED", remaining } : { code: "VALID", remaining: remaining - cost };
}

/** As keys.getKey has it; ids of limits aside, and what the caller of updateKey has no say in. */
function toResponse(model: Model): Record<string, unknown> {
  const { name, externalId, meta, expires, enabled, remaining, refill, ratelimits, roles, permissions } = model;
  const effective = new Set([...permissions, ...roles.flatMap((role) => ROLES[role] ?? [])]);
  const unlessEmpty = (list: readonly unknown[]) => (list.length === 0 ? undefined : list);
  return {
    name: name ?? undefined,
    identity: externalId === null ? undefined : { id: expect.any(String), externalId },
    meta: unlessEmpty(Object.keys(meta)) && meta,
    expires: expires ?? undefined,
    enabled,
    credits: remaining === null ? undefined : { remaining, ...(refill === null ? {} : { refill }) },
    ratelimits: unlessEmpty(ratelimits.toSorted((a, b) => (a.name < b.name ? -1 : 1))),
    roles: unlessEmpty(roles.toSorted()),
    permissions: unlessEmpty([...effective].sort()),
    updatedAt: model.isUpdated ? expect.any(Number) : undefined,
  };
}

const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null, freq: 4 });
const amount = fc.integer({ min: 0, max: 20 });
const refill = fc.constantFrom<Refill[]>(
  { interval: "daily", amount: 1 },
  { interval: "daily", amount: 2 },
  { interval: "monthly", amount: 3, refillDay: 1 },
  { interval: "monthly", amount: 3, refillDay: 31 },
  // These two are refused.
  { interval: "daily", amount: 1, refillDay: 1 },
  { interval: "monthly", amount: 1 },
);
const ratelimit = fc.record({
  name: fc.constantFrom("first", "second", "third"),
  // Too many for these few verifications to be refused.
  limit: fc.integer({ min: 1000, max: 2000 }),
  duration: fc.constantFrom(3_600_000, 7_200_000),
  autoApply: fc.boolean(),
});
const someOf = (names: readonly string[]) =>
  fc.array(fc.constantFrom(...names, ...names.map((name) => name.toUpperCase())), { maxLength: 3 });
const metaValue = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.constantFrom("", "ä", "€ 1"));
/** The forms of `credits` (api-v2.md section 10.3), each as likely as the others. */
const creditsUpdate: fc.Arbitrary<CreditsUpdate | null> = fc.oneof(
  fc.constant(null),
  fc.constant({}),
  fc.record({ remaining: amount }),
  fc.constant({ remaining: null }),
  fc.record({ refill }),
  fc.constant({ refill: null }),
  fc.record({ remaining: amount, refill }),
  fc.record({ remaining: fc.constant(null), refill: orNull(refill) }),
);
const update: fc.Arbitrary<KeyUpdate> = fc.record(
  {
    name: orNull(fc.constantFrom("one", "two words", "ümlaut")),
    externalId: orNull(fc.constantFrom("user_1", "user_2", "User_1")),
    meta: orNull(fc.dictionary(fc.constantFrom("a", "b", "nested"), fc.oneof(metaValue, fc.array(metaValue)))),
    expires: orNull(fc.constantFrom(0, 1, FAR, FAR + 1)),
    credits: creditsUpdate,
    ratelimits: orNull(fc.array(ratelimit, { maxLength: 4 })),
    enabled: fc.boolean(),
    roles: fc.oneof({ weight: 6, arbitrary: someOf(Object.keys(ROLES)) }, fc.constant(["Editor", "nobody"])),
    permissions: someOf(SLUGS),
  },
  { requiredKeys: [] },
);
const operation = fc.record(
  { operation: fc.constantFrom("set" as const, "increment" as const, "decrement" as const), value: orNull(amount) },
  { requiredKeys: ["operation"] },
);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("updateKey" as const), body: update }) },
  // On their own too, because the forms of credits hide one another, and what is refused hides everything beside it.
  { weight: 3, arbitrary: creditsUpdate.map((credits) => ({ do: "updateKey" as const, body: { credits } })) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("updateCredits" as const), body: operation }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("verifyKey" as const), cost: fc.integer({ min: 0, max: 3 }) }) },
);

/** Does one step to the key and to the model, and compares what both answer. */
async function take(one: Step, { keyId, key }: { keyId: string; key: string }, model: Model): Promise<Model> {
  if (one.do === "verifyKey") {
    const expected = verdict(model, one.cost);
    const data = await t.data("keys.verifyKey", { key, credits: { cost: one.cost } });
    expect({ code: data.code, remaining: data.credits ?? null }).toEqual(expected);
    return { ...model, remaining: expected.remaining };
  }
  const expected = one.do === "updateKey" ? afterUpdate(model, one.body) : afterOperation(model, one.body);
  const reply = await t.call(`keys.${one.do}`, { keyId, ...one.body });
  expect(reply.status).toBe(typeof expected === "number" ? expected : 200);
  if (typeof expected === "number") return model;
  if (one.do === "updateCredits") {
    const { remaining, refill: kept } = expected;
    expect(reply.body.data).toEqual({ remaining, ...(kept === null ? {} : { refill: kept }) });
  }
  return expected;
}

test("sequences of updateKey calls match a model for any changes in any order", async () => {
  const steps = fc.array(step, { minLength: 3, maxLength: STEPS_MAX, size: "max" });
  const property = fc.asyncProperty(fc.constantFrom(undefined, CREDITS), steps, async (credits, taken) => {
    const made = await t.data("keys.createKey", { apiId, ...(credits && { credits }) });
    let model: Model = { ...NEW, ...credits };
    let limitIds = new Map<string, string>();
    for (const one of taken) {
      model = await take(one, made, model);
      const { keyId, start, createdAt, lastUsedAt, ratelimits, ...rest } = await t.data("keys.getKey", {
        keyId: made.keyId,
      });
      const idsNow = new Map<string, string>(
        (ratelimits ?? []).map(({ id, name }: { id: string; name: string }) => [name, id]),
      );
      const seen = { ...rest, ratelimits: ratelimits?.map(({ id, ...limit }: { id: string }) => limit) };
      // toEqual takes a member that is undefined for one that is not there.
      expect(seen).toEqual(toResponse(model));
      // A limit whose name stays keeps its id.
      for (const [name, id] of limitIds) if (idsNow.has(name)) expect(idsNow.get(name)).toBe(id);
      limitIds = idsNow;
    }
    // Whatever it has become, verification sees the same.
    await take({ do: "verifyKey", cost: 0 }, made, model);
  });
  await fc.assert(property, { numRuns: SEQUENCES });
}, 120_000);
