import { describe, expect, test } from "vitest";
import { readStreamEntry } from "./stream-entry.ts";

/** Parses an entry whose fields have another order than the writer's. */
const read = (fields: Record<string, string>, isGlobal = true) =>
  readStreamEntry(Object.entries(fields).reverse().flat(), { isGlobal });

const place = { p: "prj_1", n: "12" };
const placed = { projectionId: "prj_1", n: 12 };

test("stream entry parser reads changes, heartbeats and projection starts", () => {
  expect(read({ ...place, k: "key", w: "ws_1", i: "hash+/=", v: "4" })).toEqual({
    ...placed,
    kind: "change",
    workspaceId: "ws_1",
    recordKind: "key",
    id: "hash+/=",
  });
  expect(read({ ...place, k: "heartbeat", t: "1760000000000" })).toEqual({
    ...placed,
    kind: "heartbeat",
    said: { asOfMs: 1_760_000_000_000, lagging: new Map() },
  });
  expect(read({ ...place, k: "begin", f: "0" })).toEqual({ ...placed, kind: "begin", forget: false });
  expect(read({ ...place, k: "begin" })).toEqual({ ...placed, kind: "begin", forget: true });
});

test("stream entry parser accepts a change without a workspace on a workspace stream", () => {
  expect(read({ ...place, k: "role", i: "role_1" }, false)).toMatchObject({ kind: "change", recordKind: "role" });
});

test("stream entry parser skips a record kind of a newer version", () => {
  expect(read({ ...place, k: "certificate", i: "c_1" })).toEqual({ ...placed, kind: "unknown" });
});

test.each([
  { name: "no fields", fields: {} },
  { name: "no number", fields: { p: "prj_1", k: "key", i: "x", w: "ws_1" } },
  ...["1e400", "NaN", "-1", "", " 1", "0x10", "1.5", "9".repeat(16)].map((n) => ({
    name: `n = ${JSON.stringify(n)}`,
    fields: { ...place, n, k: "key", i: "x", w: "ws_1" },
  })),
  { name: "no projection id", fields: { n: "12", k: "key", i: "x", w: "ws_1" } },
  { name: "a projection id with a space", fields: { ...place, p: "a b", k: "key", i: "x", w: "ws_1" } },
  { name: "a projection id that is too long", fields: { ...place, p: "p".repeat(65), k: "key", i: "x", w: "ws_1" } },
  { name: "no kind", fields: { ...place, i: "x" } },
  { name: "a kind with a NUL", fields: { ...place, k: "key\0", i: "x" } },
  { name: "a change without an id", fields: { ...place, k: "key", w: "ws_1" } },
  { name: "a change of no workspace", fields: { ...place, k: "key", i: "x" } },
])("stream entry with $name is unreadable and treated as a possible change", ({ fields }) => {
  expect(read(fields as Record<string, string>)).toMatchObject({ kind: "unreadable" });
});

test("stream entry parser handles missing values and 100,000 fields", () => {
  const many = Array.from({ length: 200_001 }, (_, i) => `x${i}`);
  expect(readStreamEntry(["p"], { isGlobal: true })).toMatchObject({ kind: "unreadable" });
  expect(readStreamEntry(many, { isGlobal: true })).toMatchObject({ kind: "unreadable" });
});

describe("workspaces that lag", () => {
  const lagging = (l: string, t = "1760000001000") => {
    const entry = read({ ...place, k: "heartbeat", t, l });
    return entry.kind === "heartbeat" ? entry.said && [...entry.said.lagging] : "no heartbeat";
  };

  test("heartbeat entry lists lagging workspaces with their times", () => {
    expect(lagging("ws_a=1760000000000 ws_b=1760000000500")).toEqual([
      ["ws_a", 1_760_000_000_000],
      ["ws_b", 1_760_000_000_500],
    ]);
    expect(lagging("")).toEqual([]);
  });

  test.each([
    "ws_a",
    "ws_a=",
    "=5",
    "ws_a=NaN",
    "ws_a=1e3",
    "ws_a=-1",
    "ws_a=5  ws_b=6",
    "ws_a=5 ",
    "ws_a=5 ws_a=6",
    "ws_a=1760000001001",
    "ws_a=5,ws_b=6",
  ])("heartbeat with the invalid list of lagging workspaces %j counts for no workspace", (text) => {
    expect(lagging(text)).toBeUndefined();
  });

  test("heartbeat on a workspace stream cannot list lagging workspaces", () => {
    expect(read({ ...place, k: "heartbeat", t: "5", l: "ws_a=4" }, false)).toMatchObject({ said: undefined });
  });

  test.each(["NaN", "1e400", "", "-5", "12 "])(
    "lagging workspaces of a heartbeat with the invalid time %j are ignored",
    (t) => {
      expect(lagging("ws_a=1", t)).toBeUndefined();
    },
  );
});
