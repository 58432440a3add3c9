import { FUNCTION_DOCS } from "../../../analytics/dialect/functions/registry.ts";
import { columnMeaning, tableMeaning } from "../../../analytics/meanings.ts";
import { PUBLIC_TABLES } from "../../../analytics/tables.ts";

/**
 * Tables, columns and functions that usage queries can use, with descriptions. The schema is the same for all callers, and is generated
 * from the data that validates queries.
 */
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
  functions: [...FUNCTION_DOCS],
};
