import { expect, test } from "vitest";
import { type Fields, instantText, listShape, objectShape, toObject } from "./fields.ts";
import { formatFields, formatTable } from "./table.ts";

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

test("a table has a heading, aligned columns and no trailing spaces", () => {
  expect(formatTable(fields, rows)).toEqual([
    "ID        NAME   NOTE",
    "thing_1   short  a note that goes on for a while and then some",
    "thing_22  -      ß",
  ]);
});

test("on a narrow terminal the columns that may shrink do, and ids are shown in full", () => {
  const lines = formatTable(fields, rows, 40);
  expect(lines[1]).toBe("thing_1   short  a note that goes on fo…");
  expect(Math.max(...lines.map((line) => line.length))).toBe(40);
  expect(formatTable(fields, rows, 5)[1]).toBe("thing_1   short  a note that…");
});

test("one thing is shown with a line per field", () => {
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
])("$name in a name is not sent to the terminal", ({ text, shown }) => {
  expect(formatFields(fields, { id: text, name: "", note: "" })[0]).toBe(`id    ${shown}`);
});

test("the machine form has every field under its name, also those that are not shown to a person", () => {
  expect(toObject(fields, rows[1] as Thing)).toEqual({
    thingId: "thing_22",
    secretary: "for machines",
    name: null,
    note: "ß",
  });
  expect(objectShape(fields)).toBe('{"thingId","secretary","name","note"}');
  expect(listShape("things", fields)).toBe('{"things":[{"thingId","secretary","name","note"}],"hasMore"}');
});

test("instants are shown in whole seconds, in UTC", () => {
  expect(instantText(1_795_261_700_084)).toBe("2026-11-21 11:48:20Z");
  expect(instantText(null, "never")).toBe("never");
});
