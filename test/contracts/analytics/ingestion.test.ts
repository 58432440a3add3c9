import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { UsageEvent } from "../../../edge/events/contract.ts";
import { EventLines } from "../../../edge/events/schema.ts";
import { anEvent } from "../edge/an-event.ts";
import { aName } from "../edge/edges.ts";
import { aScenario } from "./deliveries.ts";
import { plainCounts } from "./plain-count.ts";
import { NOW_MS, type OpenedStore, STORES } from "./stores.ts";

const batchOf = (workspaceId: string, events: readonly unknown[]) =>
  new EventLines(workspaceId, events.map((event) => JSON.stringify(event)).join("\n"));

describe.each(STORES)("usage events $name", ({ open }) => {
  let opened: OpenedStore;
  const ingest = (workspaceId: string, events: readonly unknown[]) =>
    opened.store.ingest(batchOf(workspaceId, events), NOW_MS);

  beforeAll(async () => {
    opened = await open();
  });
  afterAll(() => opened.close());

  async function expectCounts(workspaceId: string, events: readonly UsageEvent[]): Promise<void> {
    while (await opened.store.rollUp());
    expect(await opened.rawRows(workspaceId)).toBe(new Set(events.map(({ id }) => id)).size);
    for (const [table, counts] of Object.entries(plainCounts(events))) {
      expect(await opened.counts(table, workspaceId), table).toEqual(counts);
    }
  }

  test("ingestion counts each distinct event once despite shuffled, repeated and interrupted batches", async () => {
    await fc.assert(
      fc.asyncProperty(aScenario, async (scenarioOf) => {
        const workspaceId = aName("ws");
        const { portions, deliveries } = scenarioOf(workspaceId);
        let isRolledUp = false;
        for (const { batch, ends } of deliveries) {
          if (ends === "diedBefore") continue;
          await ingest(workspaceId, portions[batch] ?? []);
          isRolledUp = !isRolledUp;
          if (isRolledUp) await opened.store.rollUp();
        }
        await expectCounts(workspaceId, portions.flat());
      }),
      { numRuns: 8, seed: 7, endOnFailure: true },
    );
  }, 180_000);

  test("ingestion reports new, late and dropped events, and accepts events up to one day late", async () => {
    const workspaceId = aName("ws");
    const at = (timeMs: number) => anEvent({ workspaceId, timeMs });
    const [now, lastInTime] = [at(NOW_MS), at(NOW_MS - 86_400_000 + 1)];
    const events = [now, lastInTime, at(NOW_MS - 86_400_000), at(NOW_MS + 3_600_000), { nothing: 1 }];
    expect(await ingest(workspaceId, events)).toEqual({ stored: 2, late: 1, omitted: 2 });
    expect(await ingest(workspaceId, events)).toEqual({ stored: 0, late: 1, omitted: 2 });
    const later = at(NOW_MS + 3_600_000 - 1);
    expect(await ingest(workspaceId, [lastInTime, later, later])).toMatchObject({ stored: 1, omitted: 0 });
    await expectCounts(workspaceId, [now, lastInTime, later]);
  });

  test("ingestion stores the valid events of a batch that also has invalid events and events of another workspace", async () => {
    const workspaceId = aName("ws");
    const other = aName("ws");
    const timeMs = NOW_MS;
    const good = anEvent({ workspaceId, timeMs, tags: ["ü", "a"] });
    const poison = [
      anEvent({ workspaceId: other, timeMs }),
      { ...anEvent({ workspaceId, timeMs }), tags: "none" },
      { ...anEvent({ workspaceId, timeMs }), spentCredits: -1 },
      anEvent({ workspaceId, timeMs, keyId: "k".repeat(300) }),
    ];
    expect(await ingest(workspaceId, [...poison, good])).toEqual({ stored: 1, late: 0, omitted: 4 });
    await expectCounts(workspaceId, [good]);
    await expectCounts(other, []);
  });

  test("ingestion replaces NUL characters and lone surrogates, and rounds fractions down", async () => {
    const workspaceId = aName("ws");
    const [timeMs, id] = [NOW_MS, aName("ev")];
    const odd = {
      ...anEvent({ workspaceId, timeMs, id, externalId: "a\u0000b\ud800", tags: ["\udfff"] }),
      spentCredits: 2.9,
    };
    const good = anEvent({ workspaceId, timeMs });
    expect(await ingest(workspaceId, [odd, good])).toEqual({ stored: 2, late: 0, omitted: 0 });
    await expectCounts(workspaceId, [
      anEvent({ workspaceId, timeMs, id, externalId: "a\ufffdb\ufffd", tags: ["\ufffd"], spentCredits: 2 }),
      good,
    ]);
  });

  test("two ingesters count events of equal or overlapping batches once", async () => {
    const workspaceId = aName("ws");
    const events = Array.from({ length: 300 }, (_, i) => anEvent({ workspaceId, timeMs: NOW_MS - i * 37 }));
    await Promise.all([
      ingest(workspaceId, events),
      ingest(workspaceId, events),
      ingest(workspaceId, events.slice(100)),
      ingest(workspaceId, events.toReversed()),
    ]);
    await expectCounts(workspaceId, events);
  });

  test("events of two workspaces with equal ids are stored and counted separately", async () => {
    const [mine, theirs] = [aName("ws"), aName("ws")];
    const of = (workspaceId: string) =>
      Array.from({ length: 20 }, (_, i) => anEvent({ workspaceId, id: `ev_${i}`, timeMs: NOW_MS - i }));
    expect(await ingest(mine, of(mine))).toMatchObject({ stored: 20 });
    expect(await ingest(theirs, of(theirs))).toMatchObject({ stored: 20 });
    expect(await ingest(mine, of(mine))).toMatchObject({ stored: 0 });
    // An id that looks like a stored id of the other workspace.
    const disguised = anEvent({ workspaceId: mine, id: `${theirs}/ev_1`, timeMs: NOW_MS });
    expect(await ingest(mine, [disguised])).toMatchObject({ stored: 1 });
    await expectCounts(mine, [...of(mine), disguised]);
    await expectCounts(theirs, of(theirs));
  });

  test("ingestion sets lastUsedAt to the minute of the latest event of the workspace", async () => {
    const { db } = opened;
    const [mine, theirs] = [aName("ws"), aName("ws")];
    for (const id of [mine, theirs]) await aKeyIn(id);
    const used = async (workspaceId: string) => {
      const { rows } = await db.query<{ at: number | null }>(
        "select last_used_at as at from keys where workspace_id = $1",
        [workspaceId],
      );
      return rows[0]?.at;
    };
    await ingest(mine, [
      anEvent({ workspaceId: mine, keyId: `key_${mine}`, timeMs: NOW_MS - 60_000 }),
      anEvent({ workspaceId: mine, keyId: `key_${mine}`, timeMs: NOW_MS + 59_999 }),
      anEvent({ workspaceId: mine, keyId: `key_${theirs}`, timeMs: NOW_MS }),
    ]);
    expect(await used(mine)).toBe(NOW_MS);
    expect(await used(theirs)).toBeNull();
    await ingest(mine, [anEvent({ workspaceId: mine, keyId: `key_${mine}`, timeMs: NOW_MS - 600_000 })]);
    expect(await used(mine)).toBe(NOW_MS);

    async function aKeyIn(id: string): Promise<void> {
      await db.query("insert into workspaces (id, name, created_at) values ($1, $1, 1)", [id]);
      await db.query(
        "insert into apis (id, workspace_id, key_space_id, name, created_at) values ('api_' || $1, $1, 'ks_' || $1, 'n', 1)",
        [id],
      );
      await db.query(
        "insert into keys (id, workspace_id, api_id, hash, start, created_at) values ('key_' || $1, $1, 'api_' || $1, $1, 's', 1)",
        [id],
      );
    }
  });
});
