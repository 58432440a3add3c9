import * as fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { AnalyticsStore } from "../../../analytics/contract.ts";
import type { CountQuery, Slice, Target, UsageCount } from "../../../analytics/counts.ts";
import { sliceStart } from "../../../api-server/domain/analytics/slices.ts";
import { Code } from "../../../core/verification/codes.ts";
import type { TakenEvents, VerificationEvent } from "../../../edge/events/contract.ts";

/* Usage counts that every analytics store must return, compared with a plain count over the same events for random questions. */

export interface OpenedStore {
  readonly store: Pick<AnalyticsStore, "ingest" | "rollUp" | "maintain" | "countVerifications">;
  close(): Promise<void>;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** A range that includes the end of February in a leap year, so that days, months and their boundaries differ. */
const FIRST_DAY_MS = Date.UTC(2040, 1, 24);
/** Shorter than the default retention. */
const DAYS = 12;
const EVENTS = 4_000;
const WORKSPACES = ["ws_b", "ws_a"];

export function describeCounts(name: string, open: (options: { nowMs: () => number }) => Promise<OpenedStore>): void {
  describe(`usage counts of verifications: ${name}`, () => {
    const clock = { ms: FIRST_DAY_MS };
    let opened: OpenedStore;
    let events: readonly VerificationEvent[];

    beforeAll(async () => {
      opened = await open({ nowMs: () => clock.ms });
      events = someEvents();
      for (let day = 0; day < DAYS; day++) {
        clock.ms = FIRST_DAY_MS + (day + 1) * DAY_MS - 1;
        await opened.store.maintain(clock.ms);
        for (const workspaceId of WORKSPACES) {
          const ofDay = events.filter(
            (event) =>
              event.workspaceId === workspaceId && sliceStart("day", event.timeMs) === sliceStart("day", clock.ms),
          );
          const { stored } = await opened.store.ingest(takenOf(workspaceId, ofDay), clock.ms);
          expect(stored).toBe(ofDay.length);
        }
      }
      while (await opened.store.rollUp()) {}
    });
    afterAll(() => opened?.close());

    test("usage counts equal a plain count of events in the requested order", async () => {
      await fc.assert(
        fc.asyncProperty(anyQuestion, async (question) => {
          const counted = await opened.store.countVerifications(question);
          expect(counted.map(plain)).toEqual(countPlainly(events, question).map(plain));
        }),
        { numRuns: 300 },
      );
    });

    test("usage counts of a period without events return no rows", async () => {
      const question = { ...WHOLE, workspaceId: "ws_c" };
      expect(await opened.store.countVerifications(question)).toEqual([]);
      expect(await opened.store.countVerifications({ ...question, by: ["tag", "key"], slice: "day" })).toEqual([]);
    });

    test("usage counts exclude another workspace even if the query names its key space and keys", async () => {
      const [own] = await opened.store.countVerifications({ ...WHOLE, workspaceId: "ws_a" });
      expect(own?.total).toBe(events.filter(({ workspaceId }) => workspaceId === "ws_a").length);
      const foreign = { ...WHOLE, workspaceId: "ws_a", keySpaceIds: ["ks_of_ws_b"], keyIds: ["key_of_ws_b"] };
      expect(await opened.store.countVerifications(foreign)).toEqual([]);
    });
  });
}

/** Returns the events of a batch as delivered by a source. */
export const takenOf = (workspaceId: string, events: readonly VerificationEvent[]): TakenEvents => ({
  workspaceId,
  batchId: `portion of ${events[0]?.id}`,
  lines: events.map((event) => JSON.stringify(event)).join("\n"),
  [Symbol.iterator]: () => events[Symbol.iterator](),
});

/** Names that sort differently by code unit, by byte and case-insensitively; the second identity has an externalId of two words. */
const KEY_SPACES = ["ks_Z", "ks_a", "ks_b"];
const KEYS = ["key_Zz", "key_aa", "key_aB", "key_ab", "key_1"];
const IDENTITIES = [
  { identityId: "id_Z", externalId: "user ä" },
  { identityId: "id_a", externalId: "user, 2" },
  undefined,
];
const TAGS = ["a", "B", "ä", "\u{1f511}", "\uffee", "plan=pro, yes"];
const OUTCOMES = [...Code.options, "A_CODE_OF_A_LATER_RELEASE"];

/** Returns a deterministic random generator. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return Math.floor((state / 0x80000000) * below);
  };
}

function someEvents(): VerificationEvent[] {
  const draw = numbers(7);
  const pick = <T>(of: readonly T[]): T => of[draw(of.length)] as T;
  return Array.from({ length: EVENTS }, (_, index) => {
    const workspaceId = pick(WORKSPACES);
    const identity = pick(IDENTITIES);
    // Often at the boundary of an hour.
    const timeMs = FIRST_DAY_MS + draw(DAYS * 24) * HOUR_MS + pick([0, HOUR_MS - 1, draw(HOUR_MS)]);
    return {
      type: "verification",
      id: `ev_${workspaceId}_${index}`,
      requestId: `req_${index}`,
      timeMs,
      workspaceId,
      keySpaceId: pick([...KEY_SPACES, `ks_of_${workspaceId}`]),
      apiId: "api_1",
      keyId: pick([...KEYS, `key_of_${workspaceId}`]),
      ...identity,
      outcome: pick(OUTCOMES),
      tags: Array.from({ length: draw(4) }, () => pick(TAGS)),
      region: "",
      source: pick(["api", "sidecar"] as const),
      spentCredits: draw(3),
      latencyMs: 1,
    };
  });
}

const WHOLE: CountQuery = {
  workspaceId: "ws_a",
  keySpaceIds: undefined,
  keyIds: undefined,
  identityId: undefined,
  tags: [],
  fromMs: FIRST_DAY_MS,
  toMs: FIRST_DAY_MS + DAYS * DAY_MS,
  slice: undefined,
  by: [],
  order: { by: "total", descending: true },
  rowsMax: 1_000_000,
};

const anyQuestion: fc.Arbitrary<CountQuery> = fc
  .record({
    workspaceId: fc.constantFrom(...WORKSPACES),
    keySpaceIds: fc.option(fc.subarray([...KEY_SPACES, "ks_missing"]), { nil: undefined }),
    keyIds: fc.option(fc.subarray([...KEYS, "key_missing"]), { nil: undefined, freq: 2 }),
    identityId: fc.option(fc.constantFrom("id_Z", "id_a", "id_missing"), { nil: undefined, freq: 2 }),
    tags: fc.oneof({ weight: 2, arbitrary: fc.constant([]) }, fc.subarray(TAGS, { maxLength: 2 })),
    firstHour: fc.integer({ min: -30, max: DAYS * 24 }),
    hours: fc.oneof(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: DAYS * 24 })),
    slice: fc.constantFrom<Slice | undefined>(undefined, "hour", "day", "month"),
    by: fc.oneof(
      { weight: 2, arbitrary: fc.constant<Target[]>([]) },
      fc.subarray<Target>(["key", "identity", "tags"]),
      fc.subarray<Target>(["key", "identity", "tag"]),
    ),
    order: fc.record({
      by: fc.constantFrom<"total" | "time" | Code>("total", "time", ...Code.options),
      descending: fc.boolean(),
    }),
    rowsMax: fc.constantFrom(1, 7, 1_000_000),
  })
  .map(({ firstHour, hours, order, ...question }) => ({
    ...question,
    fromMs: FIRST_DAY_MS + firstHour * HOUR_MS,
    toMs: FIRST_DAY_MS + (firstHour + hours) * HOUR_MS,
    // Only slices have a time.
    order: question.slice === undefined && order.by === "time" ? { ...order, by: "total" } : order,
  }));

/** Computes the counts for `question` from the events one at a time. */
function countPlainly(events: readonly VerificationEvent[], question: CountQuery): UsageCount[] {
  const { slice, by, order, rowsMax } = question;
  const rows = new Map<string, UsageCount>();
  for (const event of events) {
    if (!isAskedFor(event, question)) continue;
    const { identityId, externalId = "" } = event;
    if (by.includes("identity") && identityId === undefined) continue;
    const tags = [...event.tags].sort(byBytes);
    for (const tag of by.includes("tag") ? new Set(tags) : [undefined]) {
      const target = {
        timeMs: slice && sliceStart(slice, event.timeMs),
        keyId: by.includes("key") ? event.keyId : undefined,
        identity: by.includes("identity") ? { id: identityId ?? "", externalId } : undefined,
        tags: by.includes("tags") ? tags : undefined,
        tag,
      };
      const name = JSON.stringify(target);
      const before = rows.get(name) ?? { ...target, byCode: NO_CODES, total: 0 };
      const { outcome } = event;
      const byCode = isCode(outcome) ? { ...before.byCode, [outcome]: before.byCode[outcome] + 1 } : before.byCode;
      rows.set(name, { ...before, byCode, total: before.total + 1 });
    }
  }
  const rankOf = (row: UsageCount): number =>
    order.by === "time" ? (row.timeMs ?? 0) : order.by === "total" ? row.total : row.byCode[order.by];
  const sorted = [...rows.values()].sort((a, b) => {
    const difference = rankOf(a) - rankOf(b);
    return (order.descending ? -difference : difference) || (a.timeMs ?? 0) - (b.timeMs ?? 0) || byTargets(a, b, by);
  });
  return sorted.slice(0, rowsMax);
}

function isAskedFor(
  event: VerificationEvent,
  { workspaceId, keySpaceIds, keyIds, identityId, tags, fromMs, toMs }: CountQuery,
): boolean {
  return (
    event.workspaceId === workspaceId &&
    event.timeMs >= fromMs &&
    event.timeMs < toMs &&
    (keySpaceIds === undefined || keySpaceIds.includes(event.keySpaceId)) &&
    (keyIds === undefined || keyIds.includes(event.keyId)) &&
    (identityId === undefined || event.identityId === identityId) &&
    tags.every((tag) => event.tags.includes(tag))
  );
}

/** Compares rows by the targets of the question in byte order. */
function byTargets(a: UsageCount, b: UsageCount, by: readonly Target[]): number {
  for (const target of by) {
    const [one, other] = [a, b].map((row) =>
      target === "key"
        ? [row.keyId ?? ""]
        : target === "identity"
          ? [row.identity?.id ?? ""]
          : target === "tags"
            ? (row.tags ?? [])
            : [row.tag ?? ""],
    );
    const difference = compareLists(one ?? [], other ?? []);
    if (difference !== 0) return difference;
  }
  return 0;
}

function compareLists(a: readonly string[], b: readonly string[]): number {
  for (let at = 0; at < Math.min(a.length, b.length); at++) {
    const difference = byBytes(a[at] ?? "", b[at] ?? "");
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

const NO_CODES = Object.fromEntries(Code.options.map((code) => [code, 0])) as Record<Code, number>;
const isCode = (outcome: string): outcome is Code => Code.safeParse(outcome).success;

/** Removes undefined members, so that rows compare by content. */
const plain = (row: UsageCount): unknown => JSON.parse(JSON.stringify(row));
