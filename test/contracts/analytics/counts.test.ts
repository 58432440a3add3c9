import { afterAll, beforeAll, expect, test } from "vitest";
import type { CountQuery } from "../../../analytics/counts.ts";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import { EventLines } from "../../../edge/events/schema.ts";
import { anEvent } from "../edge/an-event.ts";
import { aName } from "../edge/edges.ts";
import { NOW_MS, type OpenedStore, STORES } from "./stores.ts";

/* Usage counts of callers without SQL: the same events in both databases give the same rows in the same order. */

const HOUR_MS = 3_600_000;
const workspaceId = aName("ws");
let stores: OpenedStore[] = [];

beforeAll(async () => {
  stores = await Promise.all(STORES.map(({ open }) => open()));
  const tags = [[], ["a"], ["b", "a"], ["a", "a", "é"], ["Z'", "b"]];
  const outcomes = ["VALID", "RATE_LIMITED", "DISABLED", "OF_A_LATER_RELEASE"];
  const events: UsageEvent[] = Array.from({ length: 400 }, (_, i) =>
    anEvent({
      workspaceId,
      id: `ev_${i}`,
      timeMs: NOW_MS - ((i * 7_919) % 86_000) * 1_000,
      keySpaceId: i % 3 === 0 ? "ks_2" : "ks_1",
      keyId: `key_${(i * 5) % 11}`,
      ...(i % 4 === 0 ? {} : { identityId: `id_${i % 3}`, externalId: `user_${i % 3}` }),
      outcome: outcomes[(i * 3) % 7] ?? "VALID",
      tags: tags[i % tags.length] ?? [],
    }),
  );
  const portions = [workspaceId, aName("ws")].map(
    (id) => new EventLines(id, events.map((event) => JSON.stringify({ ...event, workspaceId: id })).join("\n")),
  );
  for (const { store } of stores) {
    for (const batch of portions) await store.ingest(batch, NOW_MS);
    while (await store.rollUp());
  }
});
afterAll(() => Promise.all(stores.map((opened) => opened.close())));

const all: CountQuery = {
  workspaceId,
  keySpaceIds: undefined,
  keyIds: undefined,
  identityId: undefined,
  tags: [],
  fromMs: NOW_MS - 24.5 * HOUR_MS,
  toMs: NOW_MS + 1.5 * HOUR_MS,
  slice: undefined,
  by: [],
  order: { by: "total", descending: true },
  rowsMax: 1_000,
};

test.each<[string, Partial<CountQuery>]>([
  ["all together", {}],
  ["per hour", { slice: "hour", order: { by: "time", descending: false } }],
  [
    "per day of one key space, the last first",
    { slice: "day", keySpaceIds: ["ks_2"], order: { by: "time", descending: true } },
  ],
  ["per month and key", { slice: "month", by: ["key"] }],
  ["the top keys", { by: ["key"], rowsMax: 3 }],
  ["by a code", { by: ["key"], order: { by: "RATE_LIMITED", descending: false } }],
  ["per identity", { by: ["identity"] }],
  ["per tag", { by: ["tag"] }],
  ["per list of tags and day", { slice: "day", by: ["tags"] }],
  ["per hour and tag of one identity", { slice: "hour", by: ["tag"], identityId: "id_1" }],
  ["of some keys with tags", { keyIds: ["key_1", "key_2", "key_9"], tags: ["a"], by: ["key"] }],
  ["of nothing", { keyIds: ["key_none"] }],
  ["of no key space, per hour", { slice: "hour", keySpaceIds: [] }],
])("usage counts match a plain count: %s", async (_, changes) => {
  const [postgres, clickhouse] = await Promise.all(
    stores.map(({ store }) => store.countVerifications({ ...all, ...changes })),
  );
  expect(clickhouse).toEqual(postgres);
  if (changes.keyIds?.[0] !== "key_none" && changes.keySpaceIds?.length !== 0)
    expect(postgres?.length).toBeGreaterThan(0);
});
