import { describe, expect, test } from "vitest";
import type { CountQuery, UsageCount } from "../../../analytics/counts.ts";
import { Code } from "../../../core/verification/codes.ts";
import { COUNTED_MAX, countUsage, FILLED_MAX, fillSlices, inOrder, type UsageQuery } from "./usage.ts";

const HOUR_MS = 3_600_000;
const NOW_MS = Date.parse("2026-03-04T12:34:56.789Z");
const CLOCK = { nowMs: NOW_MS, visibleFromMs: NOW_MS - 30 * 24 * HOUR_MS };
const at = (text: string): number => Date.parse(`${text}Z`);

const aRow = ({ total = 0, valid = 0, ...row }: Partial<UsageCount> & { valid?: number }): UsageCount => ({
  timeMs: undefined,
  keyId: undefined,
  identity: undefined,
  tags: undefined,
  tag: undefined,
  byCode: { ...(Object.fromEntries(Code.options.map((code) => [code, 0])) as Record<Code, number>), VALID: valid },
  total,
  ...row,
});

const aQuery = (question: Partial<UsageQuery> = {}): UsageQuery => ({
  workspaceId: "ws_1",
  keySpaceIds: ["ks_1"],
  keyIds: undefined,
  identityId: undefined,
  tags: [],
  startMs: at("2026-03-03T09:05"),
  endMs: at("2026-03-03T11:05"),
  slice: undefined,
  by: [],
  order: undefined,
  limit: undefined,
  ...question,
});

/** Asks, and returns what was answered beside what the store was asked. */
async function ask(question: UsageQuery, rows: readonly UsageCount[] = []) {
  const asked: CountQuery[] = [];
  const usage = await countUsage(
    async (one) => {
      asked.push(one);
      return rows;
    },
    question,
    CLOCK,
  );
  return { usage, asked };
}

describe("the usage query", () => {
  test.each([
    {
      name: "the whole hours of both ends",
      start: "2026-03-03T09:05",
      end: "2026-03-03T11:05",
      from: "2026-03-03T09:00",
      to: "2026-03-03T12:00",
    },
    {
      name: "nothing from before the retention",
      start: "2020-01-01T00:00",
      end: "2026-03-03T11:00",
      from: "2026-02-02T12:00",
      to: "2026-03-03T12:00",
    },
    {
      name: "nothing of a time that no event has yet",
      start: "2026-03-04T00:00",
      end: "2150-01-01T00:00",
      from: "2026-03-04T00:00",
      to: "2026-03-05T13:00",
    },
  ])("usage query to the analytics database covers the expected time: $name", async ({ start, end, from, to }) => {
    const { asked } = await ask(aQuery({ startMs: at(start), endMs: at(end) }));
    expect(asked).toMatchObject([{ fromMs: at(from), toMs: at(to), workspaceId: "ws_1", keySpaceIds: ["ks_1"] }]);
  });

  test.each([
    { start: "2020-01-01T00:00", end: "2020-02-01T00:00" },
    { start: "2030-01-01T00:00", end: "2030-02-01T00:00" },
  ])("usage query from $start to $end is skipped, because no event can be in this period", async ({ start, end }) => {
    const { asked, usage } = await ask(aQuery({ startMs: at(start), endMs: at(end), by: ["key"] }));
    expect([asked, usage]).toEqual([[], { kind: "counted", rows: [] }]);
  });

  test.each([
    { question: {}, order: { by: "total", descending: true } },
    { question: { by: ["key"] }, order: { by: "total", descending: true } },
    { question: { by: ["key"], slice: "day" }, order: { by: "time", descending: false } },
    { question: { by: ["key"], order: { by: "VALID", descending: false } }, order: { by: "VALID", descending: false } },
  ] as const)("usage query with the options $question is ordered by $order", async ({ question, order }) => {
    const { asked } = await ask(aQuery(question));
    expect(asked[0]?.order).toEqual(order);
  });

  test("usage query requests no more rows than the limit", async () => {
    expect((await ask(aQuery({ by: ["key"], limit: 10 }))).asked[0]?.rowsMax).toBe(10);
    expect((await ask(aQuery({ by: ["key"], limit: COUNTED_MAX + 5 }))).asked[0]?.rowsMax).toBe(COUNTED_MAX + 1);
  });
});

describe("the usage response", () => {
  test("usage response is one row, with zeros if nothing was counted", async () => {
    const { usage } = await ask(aQuery());
    expect(usage).toEqual({ kind: "counted", rows: [aRow({})] });
    const counted = aRow({ total: 3, valid: 2 });
    expect((await ask(aQuery(), [counted])).usage).toEqual({ kind: "counted", rows: [counted] });
  });

  test("usage response has a row for each hour from start to end, even without data", async () => {
    const end = at("2026-03-04T15:05");
    const { usage } = await ask(aQuery({ slice: "hour", endMs: end }), [
      aRow({ timeMs: at("2026-03-04T10:00"), total: 4 }),
    ]);
    const rows = usage.kind === "counted" ? usage.rows : [];
    expect(rows).toHaveLength(31);
    expect([rows[0]?.timeMs, rows.at(-1)?.timeMs]).toEqual([at("2026-03-03T09:00"), at("2026-03-04T15:00")]);
    expect(rows.filter(({ total }) => total > 0)).toEqual([aRow({ timeMs: at("2026-03-04T10:00"), total: 4 })]);
  });

  test("usage response is filled, then ordered, then limited", async () => {
    const most = aRow({ timeMs: at("2026-03-03T10:00"), total: 4, valid: 4 });
    const order = { by: "VALID", descending: true } as const;
    const { usage } = await ask(aQuery({ slice: "hour", order, limit: 2 }), [most]);
    expect(usage).toEqual({ kind: "counted", rows: [most, aRow({ timeMs: at("2026-03-03T09:00") })] });
  });

  test("usage response is rejected above the maximum number of slices", async () => {
    const startMs = at("2026-03-03T09:05");
    const { usage } = await ask(aQuery({ slice: "hour", startMs, endMs: startMs + (FILLED_MAX - 1) * HOUR_MS }));
    expect(usage.kind === "counted" && usage.rows.length).toBe(FILLED_MAX);
    const more = await ask(aQuery({ slice: "hour", startMs, endMs: startMs + FILLED_MAX * HOUR_MS, limit: 1 }));
    expect(more).toEqual({ asked: [], usage: { kind: "tooMany", rowsMax: FILLED_MAX } });
    expect((await ask(aQuery({ slice: "hour", startMs: 0, endMs: 8.64e15 }))).usage.kind).toBe("tooMany");
  });

  test("usage response is rejected above the maximum number of targets", async () => {
    const rows = Array.from({ length: COUNTED_MAX + 1 }, (_, index) => aRow({ keyId: `key_${index}` }));
    expect((await ask(aQuery({ by: ["key"] }), rows)).usage).toEqual({ kind: "tooMany", rowsMax: COUNTED_MAX });
    expect((await ask(aQuery({ by: ["key"] }), rows.slice(1))).usage.kind).toBe("counted");
  });
});

test("usage response has zeros only for slices without data", () => {
  const counted = [aRow({ timeMs: 20, total: 1 }), aRow({ timeMs: 15, total: 9 })];
  expect(fillSlices([10, 20], counted)).toEqual([aRow({ timeMs: 10 }), aRow({ timeMs: 20, total: 1 })]);
});

test("usage rows with equal values are ordered by time in both directions", () => {
  const rows = [aRow({ timeMs: 3, total: 1 }), aRow({ timeMs: 1, total: 1 }), aRow({ timeMs: 2, total: 2 })];
  const times = (descending: boolean) => inOrder(rows, { by: "total", descending }).map(({ timeMs }) => timeMs);
  expect([times(false), times(true)]).toEqual([
    [1, 3, 2],
    [2, 1, 3],
  ]);
  expect(inOrder(rows, { by: "time", descending: true }).map(({ timeMs }) => timeMs)).toEqual([3, 2, 1]);
});
