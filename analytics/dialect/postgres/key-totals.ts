import type { ResolvedExpression, ResolvedSelect } from "../resolve/resolved.ts";
import { childrenOf } from "../resolve/subexpressions.ts";

/*
 * Daily counts are stored twice: grouped by all public columns, and grouped by key only. The latter table has fewer and narrower rows. A
 * SELECT may read it if the result is the same.
 */

const DAYS = "key_verifications_per_day_v1";
/** Table with a subset of the columns of `DAYS`, under the same names. */
export const KEY_TOTALS = "key_totals_per_day";

const SUMS: readonly string[] = ["spent_credits", "count"];
const DIMENSIONS: readonly string[] = ["time", "workspace_id", "key_space_id", "key_id"];
/** Aggregates over a dimension whose result does not depend on the number of rows with the same value. */
const OF_VALUES: readonly string[] = ["min", "max", "uniq", "uniqExact"];

/**
 * Returns whether the result stays the same if all rows of a key and day are summed into one. A query with a condition on keys reads the
 * complete table in any case, because the complete table has an index on keys.
 */
export function readsKeyTotals({ from, aggregated, arrayJoins, ...select }: ResolvedSelect): boolean {
  if (from.kind !== "table" || from.table.name !== DAYS || !aggregated || arrayJoins.length > 0) return false;
  const columns = Object.keys(from.table.columns);
  const nameOf = (expression: ResolvedExpression | undefined): string =>
    expression?.kind === "column" ? (columns[expression.index] ?? "") : "";

  const isIndifferent = (expression: ResolvedExpression): boolean => {
    switch (expression.kind) {
      case "column":
        return DIMENSIONS.includes(nameOf(expression));
      case "aggregate": {
        const { name, distinct, arguments: operands, filter } = expression;
        if (filter !== undefined && !isIndifferent(filter)) return false;
        if (name === "sum" && !distinct && SUMS.includes(nameOf(operands[0]))) return true;
        return (distinct || OF_VALUES.includes(name)) && operands.length > 0 && operands.every(isIndifferent);
      }
      case "subquery":
        return false;
      case "in":
        return Array.isArray(expression.of) && childrenOf(expression).every(isIndifferent);
      default:
        return childrenOf(expression).every(isIndifferent);
    }
  };
  const { where, having } = select;
  const namesKeys = (expression: ResolvedExpression): boolean =>
    nameOf(expression) === "key_id" || childrenOf(expression).some(namesKeys);
  if (where !== undefined && namesKeys(where)) return false;
  const sorted = [...select.orderBy.map((order) => order.expression), ...(select.limitBy?.by ?? [])];
  const read = [...select.columns, ...select.groupBy, ...sorted];
  return [...read, where, having].every((each) => each === undefined || isIndifferent(each));
}
