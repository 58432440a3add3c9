import { describe, expect, test } from "vitest";
import { type Fields, instantText, listShape, objectShape, pagedShape, relativeText, toObject } from "./fields.ts";
import { formatFields, formatTable, openTable } from "./table.ts";

interface Thing {
  readonly id: string;
  readonly name: string | null;
  readonly note: string;
}

const fields: Fields<Thing> = [
  { name: "thingId", title: "id", value: (row) => row.id },
  { name: "secretary", value: () => "for machines" },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "note", title: "note", value: (row) => row.note, shrinks: true },
];
const rows: Thing[] = [
  { id: "thing_1", name: "short", note: "a note that goes on for a while and then some" },
  { id: "thing_22", name: null, note: "ß" },
];

test("table has a heading, aligned columns and no trailing spaces", () => {
  expect(formatTable(fields, rows)).toEqual([
    "ID        NAME   NOTE",
    "thing_1   short  a note that goes on for a while and then some",
    "thing_22  -      ß",
  ]);
});

test("table in a narrow terminal shrinks flexible columns and shows complete ids", () => {
  const lines = formatTable(fields, rows, 40);
  expect(lines[1]).toBe("thing_1   short  a note that goes on fo…");
  expect(Math.max(...lines.map((line) => line.length))).toBe(40);
  expect(formatTable(fields, rows, 5)[1]).toBe("thing_1   short  a note that…");
});

describe("a table that does not fit", () => {
  const wide: Fields<Thing> = [
    { name: "thingId", title: "id", value: (row) => row.id },
    { name: "note", title: "note", value: (row) => row.note, shrinks: true },
    {
      name: "time",
      title: "time",
      value: () => 1,
      text: () => "2026-11-21 09:30:00Z (in 3 days)",
      brief: () => "in 3 days",
    },
    { name: "first", title: "first", value: () => "left out last", drops: true },
    { name: "last", title: "last", value: () => "left out first", drops: true },
  ];
  test.each([
    { width: undefined, says: /and then some {2}2026-.*\(in 3 days\) {2}left out last {2}left out first$/ },
    { width: 94, says: /^thing_1 {3}a note tha.*… {2}2026-.*\(in 3 days\) {2}left out last {2}left out first$/ },
    { width: 80, says: /^thing_1 {3}a note that .*… {2}in 3 days {2}left out last {2}left out first$/ },
    { width: 50, says: /^thing_1 {3}a note that g… {2}in 3 days {2}left out last$/ },
    { width: 40, says: /^thing_1 {3}a note.*… {2}in 3 days$/ },
    { width: 10, says: /^thing_1 {3}a note that… {2}in 3 days$/ },
  ])("table in $width columns first shortens a flexible column, then omits columns", ({ width, says }) => {
    const lines = formatTable(wide, rows, width);
    expect(lines[1]).toMatch(says);
    if (width !== undefined && width > 10)
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
  });

  test("table printed in several parts keeps its column widths, has one heading and never truncates an id", () => {
    const table = openTable(fields, 40);
    const longer = { id: "thing_333333", name: "a name longer than any before", note: "x" };
    expect(table(rows.slice(0, 1))).toHaveLength(2);
    expect(table([longer])).toEqual([expect.stringMatching(/^thing_333333 {2}a na… {2}x$/)]);
  });
});

test("single object is printed with a line per field", () => {
  expect(formatFields(fields, { id: "thing_1", name: "x", note: "y" })).toEqual([
    "id    thing_1",
    "name  x",
    "note  y",
  ]);
});

test.each([
  { name: "an escape sequence", text: "a\u001b[31mb", shown: "a\\u{1b}[31mb" },
  { name: "a line break", text: "a\nb", shown: "a\\u{a}b" },
  { name: "a turn of direction", text: "a\u202eb", shown: "a\\u{202e}b" },
])("$name in a table cell is not sent to the terminal", ({ text, shown }) => {
  expect(formatFields(fields, { id: text, name: "", note: "" })[0]).toBe(`id    ${shown}`);
});

test("JSON of a table has every field, even fields that the table does not print", () => {
  expect(toObject(fields, rows[1] as Thing)).toEqual({
    thingId: "thing_22",
    secretary: "for machines",
    name: null,
    note: "ß",
  });
  expect(objectShape(fields)).toBe('{"thingId","secretary","name","note"}');
  expect(listShape("things", fields)).toBe('{"things":[{"thingId","secretary","name","note"}],"hasMore"}');
});

test("JSON of a partial list contains the cursor of the next page", () => {
  expect(pagedShape("things", [{ name: "id" }])).toBe('{"things":[{"id"}],"hasMore","cursor"}');
});

test.each([
  { differenceMs: 0, says: "now" },
  { differenceMs: 499, says: "now" },
  { differenceMs: 1_000, says: "in 1 second" },
  { differenceMs: 119_000, says: "in 119 seconds" },
  { differenceMs: 120_000, says: "in 2 minutes" },
  { differenceMs: -90 * 60_000, says: "90 minutes ago" },
  { differenceMs: 47.9 * 3_600_000, says: "in 48 hours" },
  { differenceMs: 3.2 * 86_400_000, says: "in 3 days" },
  { differenceMs: -100 * 86_400_000, says: "3 months ago" },
  { differenceMs: 7_300 * 86_400_000, says: "in 20 years" },
])("time difference of $differenceMs ms is printed as $says", ({ differenceMs, says }) => {
  expect(relativeText(1_795_261_700_084 + differenceMs, 1_795_261_700_084)).toBe(says);
});

test("times are printed in full seconds, in UTC", () => {
  expect(instantText(1_795_261_700_084)).toBe("2026-11-21 11:48:20Z");
  expect(instantText(null, "never")).toBe("never");
});
