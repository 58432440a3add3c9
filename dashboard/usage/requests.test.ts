import { describe, expect, test } from "vitest";
import { followLog, type LogPage, logPage, PAGE_ROWS, READ_ROWS, type RowOf } from "./requests.ts";

/** Rows of single events `[time, request id]`, as the queries return them. */
const rowsOf = (...events: readonly (readonly [time: number, requestId: string])[]) =>
  READ_ROWS.ratelimits(events.map(([time, request_id]) => ({ time, request_id })));
const countdown = (fromMs: number, count: number) =>
  Array.from({ length: count }, (_, n) => [fromMs - n, `req_${fromMs - n}`] as const);
const ids = ({ rows }: LogPage<RowOf["ratelimits"]>) => rows.map(({ id }) => id);

describe("pages of the request log", () => {
  test("page of the request log is the last one if it is not full", () => {
    expect(logPage(rowsOf(...countdown(1000, 3)), 5)).toMatchObject({ sinceMs: 5, next: undefined });
  });

  test("full page of the request log omits its last request, which the next page reads completely", () => {
    const rows = rowsOf(...countdown(1000, PAGE_ROWS - 2), [800, "req_b"], [800, "req_b"]);
    const page = logPage(rows, 5);
    expect(page.rows).toHaveLength(PAGE_ROWS - 2);
    expect(page.next).toEqual({ sinceMs: 5, timeMs: 800, requestId: "req_b", isAfter: false });
  });

  test("page of the request log that is filled by a single request is followed by the next request", () => {
    const page = logPage(rowsOf(...Array.from({ length: PAGE_ROWS }, () => [800, "req_b"] as const)), 5);
    expect(new Set(ids(page)).size).toBe(PAGE_ROWS);
    expect(page.next).toEqual({ sinceMs: 5, timeMs: 800, requestId: "req_b", isAfter: true });
  });
});

describe("following the request log", () => {
  const log = logPage(rowsOf([900, "b"], [900, "a"], [700, "c"], [500, "d"]), 0);

  test("new rows of the request log come first, and a late row is inserted in order of time", () => {
    const fresh = logPage(rowsOf([950, "e"], [900, "b"], [900, "a"], [800, "late"], [700, "c"]), 600);
    const { page, added, hasMore } = followLog(log, fresh);
    expect(page.rows.map(({ requestId }) => requestId)).toEqual(["e", "b", "a", "late", "c", "d"]);
    expect([added, hasMore, page.sinceMs]).toEqual([2, false, 0]);
    expect(followLog(page, fresh)).toEqual({ page, added: 0, hasMore: false });
  });

  test("second check of a request that is already in the log adds one row", () => {
    const { page, added } = followLog(log, logPage(rowsOf([900, "b"], [900, "b"], [900, "a"], [700, "c"]), 600));
    expect(added).toBe(1);
    expect(new Set(ids(page)).size).toBe(5);
  });

  test("full page of new rows that overlaps the request log joins the log without a gap or a duplicate", () => {
    const known = logPage(rowsOf(...countdown(1000, 50)), 0);
    const { page, added, hasMore } = followLog(known, logPage(rowsOf(...countdown(1060, PAGE_ROWS)), 0));
    expect(ids(page)).toEqual(rowsOf(...countdown(1060, 110)).map(({ id }) => id));
    expect([added, hasMore]).toEqual([60, false]);
  });

  test("request log starts over if there are more new rows than fit on a page, and its next pages contain all older rows", () => {
    const { page, added, hasMore } = followLog(log, logPage(rowsOf(...countdown(5000, PAGE_ROWS)), 850));
    expect(page.rows).toHaveLength(PAGE_ROWS - 1);
    expect(page.next).toEqual({ sinceMs: 0, timeMs: 4901, requestId: "req_4901", isAfter: false });
    expect([added, hasMore]).toEqual([PAGE_ROWS - 1, true]);
  });
});
