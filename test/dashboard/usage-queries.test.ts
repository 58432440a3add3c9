import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bucket, windowOf } from "../../dashboard/usage/buckets.ts";
import { KEYWORDS } from "../../dashboard/usage/completion.ts";
import { EXAMPLES } from "../../dashboard/usage/examples.ts";
import {
  checksQuery,
  keySpacesQuery,
  outcomesQuery,
  refusingLimitsQuery,
  textLiteral,
  topIdentifiersQuery,
  topKeysQuery,
  topOwnersQuery,
  type UsageFilter,
} from "../../dashboard/usage/queries.ts";
import {
  type LogFilter,
  type LogPage,
  type LogPart,
  logPage,
  logQuery,
  READ_ROWS,
  type RowOf,
} from "../../dashboard/usage/requests.ts";
import {
  checksOverTime,
  outcomesOverTime,
  readCheckRows,
  readIdentifierRows,
  readLimitRows,
  readOutcomeRows,
  readTopRows,
} from "../../dashboard/usage/series.ts";
import { queryOf } from "../../dashboard/usage/sql-fragment.ts";
import type { RatelimitEvent, VerificationEvent } from "../../edge/events/contract.ts";
import { EventLines } from "../../edge/events/schema.ts";
import { KINDS, openServed, type Served } from "../analytics/served.ts";
import { aRatelimitEvent, aVerificationEvent } from "../builders/usage-event.ts";

/*
 * The questions behind the pictures of the dashboard, asked of both stores by the API, and compared with a plain count over the events.
 */

const NOW_MS = Date.UTC(2042, 4, 31, 12, 34, 56, 789);
const HOUR_MS = 3_600_000;
const WORKSPACE = "ws_main";
const HOSTILE = "o'brien\\'; DROP TABLE <script>alert(1)</script> 名前 🎉";
const OWNERS = ["", "user_1", HOSTILE, "User_1", "\\"];
const KEYS = ["key_b", "key_a", "key_C", "key_d"];
const OUTCOMES = ["VALID", "VALID", "RATE_LIMITED", "EXPIRED", "USAGE_EXCEEDED"];

/** Events of the last day: only such are stored. */
const verifications: readonly VerificationEvent[] = Array.from({ length: 400 }, (_, n) =>
  aVerificationEvent({
    workspaceId: WORKSPACE,
    timeMs: NOW_MS - ((n * 7_919) % (23 * 60)) * 60_000,
    keyId: KEYS[(n * n) % KEYS.length] ?? "",
    keySpaceId: `ks_${n % 2}`,
    externalId: OWNERS[n % OWNERS.length] || undefined,
    outcome: OUTCOMES[(n * 3) % OUTCOMES.length] ?? "",
    spentCredits: n % 4,
    latencyMs: ((n * 37) % 400) / 8,
  }),
);
const limits: readonly RatelimitEvent[] = Array.from({ length: 200 }, (_, n) =>
  aRatelimitEvent({
    workspaceId: WORKSPACE,
    timeMs: NOW_MS - ((n * 31) % 600) * 60_000,
    namespaceId: `rlns_${n % 3}`,
    identifier: n % 5 === 0 ? HOSTILE : `client_${n % 7}`,
    passed: n % 3 !== 0,
  }),
);

/** Of 300 requests the 60th to 159th are in the same millisecond, and a hundred checks are of one request: both lie across page borders. */
const LOGGED = "ws_logged";
const atOf = (n: number): number => NOW_MS - (n < 60 ? n : n < 160 ? 60 : n - 99) * 1000;
const logged: readonly VerificationEvent[] = Array.from({ length: 300 }, (_, n) =>
  aVerificationEvent({
    workspaceId: LOGGED,
    requestId: n % 50 === 0 ? `${HOSTILE}${n}` : `req_${(n * 7_919) % 1000}`,
    timeMs: atOf(n),
    keyId: KEYS[n % KEYS.length] ?? "",
    keySpaceId: `ks_${n % 2}`,
    externalId: OWNERS[n % OWNERS.length] || undefined,
    outcome: OUTCOMES[n % OUTCOMES.length] ?? "",
    tags: n === 0 ? [HOSTILE] : [],
  }),
);
const checks: readonly RatelimitEvent[] = Array.from({ length: 300 }, (_, n) =>
  aRatelimitEvent({
    workspaceId: LOGGED,
    requestId: n < 40 || n >= 140 ? `req_${n}` : "req_multi",
    timeMs: NOW_MS - (n < 40 ? n : n < 140 ? 40 : n - 99) * 1000,
    namespaceId: `rlns_${n % 3}`,
    identifier: n % 5 === 0 ? HOSTILE : `client_${n}`,
    passed: n % 3 !== 0,
    overrideId: n === 0 ? "rlor_1" : undefined,
    limit: 10,
    remaining: n % 10,
  }),
);
const LOG_FILTERS: readonly (LogFilter & { readonly name: string })[] = [
  { name: "no filter" },
  { name: "an owner with a hostile name", externalId: HOSTILE },
  { name: "one backslash as the owner", externalId: "\\" },
  { name: "all filters", keySpaceId: "ks_1", keyId: "key_a", externalId: "user_1", outcome: "VALID" },
  { name: "a hostile key", keyId: HOSTILE },
];

let served: Served;
let rootKey: string;
let loggedKey: string;
beforeAll(async () => {
  served = await openServed({ nowMs: NOW_MS });
  rootKey = await served.addWorkspace(WORKSPACE);
  const strangers = await served.addWorkspace("ws_other");
  expect(strangers).not.toBe(rootKey);
  loggedKey = await served.addWorkspace(LOGGED);
  for (const store of [served.t.analytics, served.clickhouse.store]) {
    await store.maintain(NOW_MS);
    for (const [workspaceId, events] of [
      [WORKSPACE, [...verifications, ...limits]],
      [LOGGED, [...logged, ...checks]],
      ["ws_other", verifications.map((event) => ({ ...event, id: `other_${event.id}`, workspaceId: "ws_other" }))],
    ] as const) {
      const batch = new EventLines(workspaceId, events.map((event) => JSON.stringify(event)).join("\n"));
      expect(await store.ingest(batch, NOW_MS)).toMatchObject({ stored: events.length });
    }
    while (await store.rollUp());
  }
});
afterAll(() => served?.close());

const windowIn = (bucket: Bucket) =>
  windowOf({ minute: "6h", hour: "24h", day: "30d" }[bucket] as "6h" | "24h" | "30d", NOW_MS);
const BUCKETS: readonly Bucket[] = ["minute", "hour", "day"];

const fits = (event: VerificationEvent, filter: UsageFilter): boolean =>
  (filter.keySpaceId ?? event.keySpaceId) === event.keySpaceId &&
  (filter.keyId ?? event.keyId) === event.keyId &&
  (filter.externalId ?? event.externalId) === event.externalId &&
  (filter.outcome ?? event.outcome) === event.outcome;

const inWindow = ({ timeMs }: { timeMs: number }, { fromMs, toMs }: { fromMs: number; toMs: number }): boolean =>
  timeMs >= fromMs && timeMs < toMs;

/** The ten largest groups, equal ones by their name in bytes. */
function largest<Event>(events: readonly Event[], nameOf: (event: Event) => string): [string, Event[]][] {
  const groups = new Map<string, Event[]>();
  for (const event of events) groups.set(nameOf(event), [...(groups.get(nameOf(event)) ?? []), event]);
  return [...groups]
    .toSorted(([a, x], [b, y]) => y.length - x.length || Buffer.compare(Buffer.from(a), Buffer.from(b)))
    .slice(0, 10);
}

/** Between the two nearest of the sorted values. */
function quantileOf(sorted: readonly number[], part: number): number {
  const place = part * (sorted.length - 1);
  const [below = 0, above = below] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place - Math.floor(place));
}

const toTop = ([id, events]: [string, VerificationEvent[]]) => ({
  id,
  verifications: events.length,
  refused: events.filter(({ outcome }) => outcome !== "VALID").length,
  credits: events.reduce((sum, { spentCredits }) => sum + spentCredits, 0),
});

const EVERY_WORD: readonly string[] = [
  `WITH recent AS (SELECT DISTINCT key_id, outcome, count() AS n FROM key_verifications_v1
     WHERE time >= now() - INTERVAL 2 DAY AND NOT (key_id IN ('x') OR key_id LIKE 'y%' OR key_id ILIKE 'z%')
       AND spent_credits BETWEEN 0 AND 9 AND external_id IS NOT NULL GROUP BY key_id, outcome HAVING n > 0)
   SELECT r.key_id, CASE WHEN r.outcome = 'VALID' THEN 1 ELSE 0 END AS ok, row_number() OVER (PARTITION BY r.key_id ORDER BY r.n DESC) AS place
     FROM recent AS r LEFT JOIN recent AS s ON r.key_id = s.key_id INNER JOIN recent AS t ON t.key_id = r.key_id
    ORDER BY place ASC LIMIT 5 OFFSET 1`,
  `SELECT key_id FROM key_verifications_v1 UNION ALL SELECT external_id FROM key_verifications_v1 LIMIT 3`,
  `SELECT key_id FROM key_verifications_v1 EXCEPT SELECT key_id FROM key_verifications_v1`,
  `SELECT toInt64(count) AS n FROM key_verifications_per_day_v1 GROUP BY n ORDER BY n WITH FILL FROM 0 TO 4 STEP 2`,
];

const FILTERS: readonly (UsageFilter & { readonly name: string })[] = [
  { name: "everything" },
  { name: "one API", keySpaceId: "ks_1" },
  { name: "one key", keyId: "key_a" },
  { name: "an owner with a hostile name", externalId: HOSTILE },
  { name: "an owner that is one backslash", externalId: "\\" },
  { name: "one outcome", outcome: "RATE_LIMITED" },
  { name: "all of them", keySpaceId: "ks_0", keyId: "key_b", externalId: "user_1", outcome: "VALID" },
  { name: "nothing", keyId: "key_missing" },
];

describe.each(KINDS)("on %s", (kind) => {
  async function rows(query: string, of: "verifications" | "ratelimits" = "verifications") {
    const reply = await served.ask(kind, { rootKey, query, of });
    if (reply.rowsJson === undefined) throw new Error(`${JSON.stringify(reply)}\n${query}`);
    return JSON.parse(reply.rowsJson) as Record<string, unknown>[];
  }

  describe.each(BUCKETS)("by the %s", (bucket) => {
    const window = windowIn(bucket);

    test.each(FILTERS)(
      "usage chart of outcomes equals the recorded verifications: $name",
      async ({ name: _, ...filter }) => {
        const counted = verifications.filter((event) => inWindow(event, window) && fits(event, filter));
        const over = outcomesOverTime(
          readOutcomeRows(await rows(outcomesQuery(window, filter))),
          window,
          Number.POSITIVE_INFINITY,
        );
        expect(over.total).toBe(counted.length);
        expect(over.creditsTotal).toBe(counted.reduce((sum, { spentCredits }) => sum + spentCredits, 0));
        for (const { outcome, counts } of over.series) {
          const expected = over.times.map(
            (ms, index) =>
              counted.filter(
                (event) =>
                  event.outcome === outcome &&
                  event.timeMs >= ms &&
                  event.timeMs < (over.times[index + 1] ?? window.toMs),
              ).length,
          );
          expect(counts, outcome).toEqual(expected);
        }
      },
    );

    test.each(FILTERS)(
      "usage chart of top keys and owners equals the recorded usage: $name",
      async ({ name: _, ...filter }) => {
        const counted = verifications.filter((event) => inWindow(event, window) && fits(event, filter));
        expect(readTopRows(await rows(topKeysQuery(window, filter)), "key_id")).toEqual(
          largest(counted, ({ keyId }) => keyId).map(toTop),
        );
        const owned = counted.filter(({ externalId }) => externalId !== undefined);
        expect(readTopRows(await rows(topOwnersQuery(window, filter)), "external_id")).toEqual(
          largest(owned, ({ externalId }) => externalId ?? "").map(toTop),
        );
      },
    );

    test("usage chart of denying limits omits limits without denials", async () => {
      const refused = limits.filter((event) => inWindow(event, window) && !event.passed);
      const expected = largest(refused, ({ namespaceId, identifier }) => `${namespaceId} ${identifier}`);
      const found = readLimitRows(await rows(refusingLimitsQuery(window), "ratelimits"));
      expect(found.map(({ namespaceId, identifier, refused }) => [`${namespaceId} ${identifier}`, refused])).toEqual(
        expected.map(([name, events]) => [name, events.length]),
      );
      for (const { namespaceId, identifier, checks } of found) {
        const of = limits.filter(
          (event) => inWindow(event, window) && event.namespaceId === namespaceId && event.identifier === identifier,
        );
        expect(checks).toBe(of.length);
      }
    });

    test.each(["rlns_1", "rlns_missing", HOSTILE])(
      "namespace charts equal the recorded checks: %j",
      async (namespaceId) => {
        const of = limits.filter((event) => inWindow(event, window) && event.namespaceId === namespaceId);
        const found = readCheckRows(await rows(checksQuery(window, namespaceId), "ratelimits"));
        const { times, passed, refused } = checksOverTime(found, window, Number.POSITIVE_INFINITY);
        for (const [values, isPassed] of [
          [passed, true],
          [refused, false],
        ] as const) {
          const expected = times.map(
            (ms, index) =>
              of.filter(
                (event) =>
                  event.passed === isPassed && event.timeMs >= ms && event.timeMs < (times[index + 1] ?? window.toMs),
              ).length,
          );
          expect(values).toEqual(expected);
        }
        for (const by of ["checks", "refused"] as const) {
          const counted = by === "checks" ? of : of.filter((event) => !event.passed);
          const top = readIdentifierRows(await rows(topIdentifiersQuery(window, namespaceId, by), "ratelimits"));
          expect(top).toEqual(
            largest(counted, ({ identifier }) => identifier).map(([identifier]) => {
              const ofIdentifier = of.filter((event) => event.identifier === identifier);
              const { length } = ofIdentifier.filter((event) => !event.passed);
              return { identifier, checks: ofIdentifier.length, refused: length };
            }),
          );
        }
      },
    );

    test("usage page lists the used key spaces", async () => {
      const found = await rows(keySpacesQuery(window));
      expect(found.map(({ key_space_id }) => key_space_id).toSorted()).toEqual(["ks_0", "ks_1"]);
    });
  });

  test.each(FILTERS.filter(({ outcome }) => outcome === undefined))(
    "usage latencies equal the latencies of the recorded events: $name",
    async ({ name: _, keySpaceId, keyId, externalId }) => {
      const { fromMs, toMs } = windowIn("hour");
      const store = kind === "postgres" ? served.t.analytics : served.clickhouse.store;
      for (const within of [undefined, ["ks_0"], []]) {
        const found = await store.countLatencies({
          workspaceId: WORKSPACE,
          within,
          keySpaceId,
          keyId,
          externalId,
          fromMs,
          toMs,
          stepMs: HOUR_MS,
          timeoutMs: 10_000,
        });
        const seen = verifications.filter(
          (event) =>
            inWindow(event, { fromMs, toMs }) &&
            fits(event, { keySpaceId, keyId, externalId }) &&
            within?.includes(event.keySpaceId) !== false,
        );
        const steps = [...new Set(seen.map(({ timeMs }) => Math.floor(timeMs / HOUR_MS) * HOUR_MS))].sort();
        expect(found.map(({ timeMs }) => timeMs)).toEqual(steps);
        for (const { timeMs, count, p50, p95, p99 } of found) {
          const of = seen
            .filter((event) => event.timeMs >= timeMs && event.timeMs < timeMs + HOUR_MS)
            .map(({ latencyMs }) => latencyMs)
            .sort((a, b) => a - b);
          expect(count).toBe(of.length);
          for (const [quantile, part] of [
            [p50, 0.5],
            [p95, 0.95],
            [p99, 0.99],
          ] as const) {
            expect(quantile).toBeCloseTo(quantileOf(of, part), 9);
          }
        }
      }
    },
  );

  /** All rows of the log, read page by page. */
  async function readLog<Of extends "verifications" | "ratelimits">(of: Of, filter: LogFilter) {
    const pages: RowOf[Of][] = [];
    let part: LogPart | undefined = { sinceMs: NOW_MS - HOUR_MS };
    for (let reads = 0; part !== undefined; reads++) {
      expect(reads).toBeLessThan(10);
      const reply: string | undefined = (
        await served.ask(kind, { rootKey: loggedKey, query: logQuery(of, part, filter), of })
      ).rowsJson;
      const answer: Record<string, unknown>[] = JSON.parse(reply ?? "");
      expect(answer.length).toBeLessThanOrEqual(100);
      const page: LogPage<RowOf[Of]> = logPage<RowOf[Of]>(READ_ROWS[of](answer), part.sinceMs);
      pages.push(...page.rows);
      part = page.next;
    }
    return pages;
  }

  test.each(LOG_FILTERS)(
    "request log has each verification once, newest first: $name",
    async ({ name: _, ...filter }) => {
      const rows = await readLog("verifications", filter);
      const expected = logged.filter((event) => fits(event, filter));
      expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
      expect(rows.map(({ timeMs }) => timeMs)).toEqual(expected.map(({ timeMs }) => timeMs));
      const toText = ({ timeMs, requestId, keyId, externalId = "", outcome, tags }: Partial<VerificationEvent>) =>
        JSON.stringify([timeMs, requestId, keyId, externalId, outcome, tags]);
      expect(rows.map(toText).toSorted()).toEqual(expected.map(toText).toSorted());
    },
  );

  test.each<LogFilter & { readonly name: string }>([
    { name: "no filter" },
    { name: "admitted", passed: true },
    { name: "rejected checks of a hostile identifier", passed: false, identifier: HOSTILE },
    { name: "one namespace", namespaceId: "rlns_1" },
  ])("request log has each rate limit check once, newest first: $name", async ({ name: _, ...filter }) => {
    const rows = await readLog("ratelimits", filter);
    const expected = checks.filter(
      (event) =>
        (filter.passed ?? event.passed) === event.passed &&
        (filter.namespaceId ?? event.namespaceId) === event.namespaceId &&
        (filter.identifier ?? event.identifier) === event.identifier,
    );
    expect(new Set(rows.map(({ id }) => id)).size).toBe(rows.length);
    expect(rows.map(({ timeMs }) => timeMs)).toEqual(expected.map(({ timeMs }) => timeMs));
    const toText = (row: Partial<RatelimitEvent>) =>
      JSON.stringify([
        row.timeMs,
        row.requestId,
        row.namespaceId,
        row.identifier,
        row.passed,
        row.overrideId ?? "",
        row.limit,
        row.remaining,
      ]);
    expect(rows.map(toText).toSorted()).toEqual(expected.map(toText).toSorted());
  });

  test.each(EXAMPLES)("example query returns rows: $title", async ({ sql }) => {
    // No event of these has tags.
    const expected = sql.includes("arrayJoin(tags)") ? [] : expect.arrayContaining([expect.any(Object)]);
    expect(await rows(sql, queryOf(sql))).toEqual(expected);
  });

  test("each suggestion of the query editor works in a query", async () => {
    for (const sql of EVERY_WORD) await rows(sql);
    const written = new Set(EVERY_WORD.join(" ").split(/\W+/));
    expect(KEYWORDS.filter((word) => !written.has(word))).toEqual([]);
  });

  test("usage window starting at the retention bound is accepted", async () => {
    const visibleFromMs = NOW_MS - 30 * 24 * HOUR_MS;
    const range = { fromMs: 0, toMs: NOW_MS };
    expect(await rows(outcomesQuery(windowOf(range, NOW_MS, visibleFromMs)))).not.toEqual([]);
  });

  test.each([HOSTILE, "\\", "'", "\\'", "\n\t", "-- x", "%_"])(
    "hostile text %j is a valid literal in usage queries",
    async (text) => {
      const query = `SELECT ${textLiteral(text)} AS it FROM key_verifications_v1 LIMIT 1`;
      expect(await rows(query)).toEqual([{ it: text }]);
    },
  );
});
