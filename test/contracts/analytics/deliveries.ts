import fc from "fast-check";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import { NOW_MS } from "./stores.ts";

/*
 * Possible deliveries of events to an analytics store. Batches are fixed, as in the stream: an unacknowledged batch is delivered again
 * unchanged. Events are shuffled and repeated within and between batches.
 */

/** Result of a batch delivery. Only `stored` ends its redelivery. */
export type Delivery = "stored" | "diedBefore" | "diedAfter";

export interface Scenario {
  readonly portions: readonly (readonly UsageEvent[])[];
  /** Deliveries in order; the last one of each batch is `stored`. */
  readonly deliveries: readonly { readonly batch: number; readonly ends: Delivery }[];
}

const HOUR_MS = 3_600_000;

/** Mostly the current time; some times cross a minute, hour, day or month, and some are nearly a day late. */
const aTime = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: NOW_MS - 120_000, max: NOW_MS }) },
  { weight: 2, arbitrary: fc.integer({ min: NOW_MS, max: NOW_MS + HOUR_MS - 1 }) },
  { weight: 2, arbitrary: fc.integer({ min: NOW_MS - 24 * HOUR_MS + 1, max: NOW_MS }) },
);

const aText = fc.constantFrom("", "a", "b", "é", "z\t'\\\"", "日本 🎉");
const common = { requestId: fc.constantFrom("req_1", "req_2"), timeMs: aTime, latencyMs: fc.constantFrom(0, 1.5) };
const aVerification = fc.record({
  type: fc.constant("verification" as const),
  ...common,
  keySpaceId: fc.constantFrom("ks_1", "ks_B"),
  apiId: fc.constant("api_1"),
  keyId: fc.constantFrom("key_1", "key_2", "Key_2"),
  identityId: fc.constantFrom(undefined, "id_1"),
  externalId: fc.option(aText, { nil: undefined }),
  outcome: fc.constantFrom("VALID", "RATE_LIMITED"),
  tags: fc.array(aText, { maxLength: 3 }),
  region: fc.constant("eu"),
  source: fc.constantFrom("api" as const, "sidecar" as const),
  appId: fc.constantFrom(undefined, "pol_1"),
  spentCredits: fc.integer({ min: 0, max: 5 }),
});
const aRatelimit = fc.record({
  type: fc.constant("ratelimit" as const),
  ...common,
  namespaceId: fc.constantFrom("rlns_1", "rlns_2"),
  identifier: aText,
  passed: fc.boolean(),
  overrideId: fc.constantFrom(undefined, "rlor_1"),
  limit: fc.constant(10),
  remaining: fc.integer({ min: 0, max: 10 }),
  resetMs: fc.constant(NOW_MS),
  cost: fc.integer({ min: 0, max: 3 }),
});

/** `scenarioOf` adds ids and the workspace. */
const anEvent = fc.oneof({ weight: 3, arbitrary: aVerification }, { weight: 1, arbitrary: aRatelimit });

export const aScenario: fc.Arbitrary<(workspaceId: string) => Scenario> = fc
  .record({
    events: fc.array(anEvent, { minLength: 20, maxLength: 120 }),
    /** Indexes of events that are sent again, in another batch or in the same. */
    again: fc.array(fc.nat(119), { maxLength: 40 }),
    batchSizes: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 }),
    shuffle: fc.array(fc.nat(), { minLength: 200, maxLength: 200 }),
    deaths: fc.array(
      fc.record({
        batch: fc.nat(11),
        ends: fc.constantFrom<Delivery>("diedBefore", "diedAfter"),
        /** Number of other deliveries before the redelivery. */
        laterBy: fc.nat(4),
      }),
      { maxLength: 10 },
    ),
  })
  .map(({ events, again, batchSizes, shuffle, deaths }) => (workspaceId: string) => {
    const sent = events.map((event, i) => ({
      ...event,
      workspaceId,
      id: `ev_${workspaceId}_${(i * 7919) % 1009}_${i}`,
    }));
    const repeated = again.flatMap((i) => sent[i] ?? []);
    const shuffled = [...sent, ...repeated]
      .map((event, i) => ({ event, rank: shuffle[i % shuffle.length] ?? 0 }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ event }) => event);
    const portions: UsageEvent[][] = [];
    for (let at = 0; at < shuffled.length; ) {
      const size = batchSizes[portions.length % batchSizes.length] ?? 1;
      portions.push(shuffled.slice(at, at + size));
      at += size;
    }
    const deliveries: { batch: number; ends: Delivery }[] = portions.map((_, batch) => ({
      batch,
      ends: "stored",
    }));
    for (const { batch, ends, laterBy } of deaths) {
      const final = deliveries.findIndex(
        (delivery) => delivery.batch === batch % portions.length && delivery.ends === "stored",
      );
      // This delivery fails, and the batch is redelivered after some others.
      deliveries.splice(final, 1, { batch: batch % portions.length, ends });
      deliveries.splice(final + 1 + laterBy, 0, { batch: batch % portions.length, ends: "stored" });
    }
    return { portions, deliveries };
  });
