import { describe, expect, test } from "vitest";
import { columnMeaning, tableMeaning } from "./meanings.ts";
import { PUBLIC_TABLES } from "./tables.ts";

describe.each(PUBLIC_TABLES)("$name", (table) => {
  test("each analytics table and each of its columns has a description", () => {
    expect(tableMeaning(table)).toMatch(/\.$/);
    for (const column of Object.keys(table.columns)) expect(columnMeaning(table, column), column).toMatch(/\.$/);
    expect(columnMeaning(table, "constructor")).toBeUndefined();
  });
});
