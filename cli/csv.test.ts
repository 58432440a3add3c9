import { expect, test } from "vitest";
import { formatCsv } from "./csv.ts";

test("CSV quotes values with commas, quotes and line breaks; null is empty", () => {
  const fields = [
    { name: "name", value: (row: readonly unknown[]) => row[0] },
    { name: "a,b", value: (row: readonly unknown[]) => row[1] },
  ];
  const rows = [
    ["plain", 0],
    ["a, b", null],
    ['say "hi"', undefined],
    ["two\nlines", "ä"],
  ];
  expect(formatCsv(fields, rows)).toEqual(['name,"a,b"', "plain,0", '"a, b",', '"say ""hi""",', '"two\nlines",ä']);
  expect(formatCsv(fields, [])).toHaveLength(1);
});
