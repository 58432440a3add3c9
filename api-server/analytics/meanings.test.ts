import { describe, expect, test } from "vitest";
import { functionMeaning, functionsWithMeaning } from "./dialect/function-meanings.ts";
import { PUBLISHED_FUNCTIONS } from "./dialect/functions.ts";
import { columnMeaning, tableMeaning } from "./meanings.ts";
import { PUBLIC_TABLES } from "./tables.ts";

describe.each(PUBLIC_TABLES)("$name", (table) => {
  test("has a meaning, and so has each of its columns", () => {
    expect(tableMeaning(table)).toMatch(/\.$/);
    for (const column of Object.keys(table.columns)) expect(columnMeaning(table, column), column).toMatch(/\.$/);
    expect(columnMeaning(table, "constructor")).toBeUndefined();
  });
});

test("each function that is offered has a meaning, and no other", () => {
  expect([...functionsWithMeaning].toSorted()).toEqual([...PUBLISHED_FUNCTIONS].toSorted());
  for (const name of PUBLISHED_FUNCTIONS) expect(functionMeaning(name)?.meaning).toMatch(/\.$/);
});
