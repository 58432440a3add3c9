import { functionMeaning } from "../../analytics/dialect/function-meanings.ts";
import { PUBLISHED_FUNCTIONS } from "../../analytics/dialect/functions.ts";
import { columnMeaning, tableMeaning } from "../../analytics/meanings.ts";
import { PUBLIC_TABLES } from "../../analytics/tables.ts";

/** What queries about usage may name, with its meaning; the same for everybody. Made of what checks the queries. */
export const ANALYTICS_SCHEMA = {
  tables: PUBLIC_TABLES.map((table) => ({
    name: table.name,
    of: table.of,
    meaning: tableMeaning(table),
    columns: Object.entries(table.columns).map(([name, type]) => ({
      name,
      type,
      meaning: columnMeaning(table, name) ?? "",
    })),
  })),
  functions: PUBLISHED_FUNCTIONS.flatMap((name) => {
    const meaning = functionMeaning(name);
    return meaning === undefined ? [] : [{ name, ...meaning }];
  }),
};
