import {
  type Aggregated,
  averageSql,
  countSql,
  distinctSql,
  extremeArgumentSql,
  extremeSql,
  groupArraySql,
  quantileSql,
  quantilesSql,
  sumSql,
} from "../postgres/aggregates.ts";
import type { Writer } from "../postgres/writer.ts";
import { arrayOf, FLOAT64, INT64, isDate, isNumeric, type Type, UINT64, widthOf, withNull } from "../resolve/types.ts";
import type { Docs } from "./entry.ts";

export interface AggregateFunction {
  readonly docs: Docs;
  /**
   * Name of the function without its suffix `If`, such as `sum` for `sumIf`. The last argument of a function with the suffix is the
   * condition.
   */
  readonly conditionalOf?: string;
  /** Minimum and maximum argument count. Default: one argument. */
  readonly takes?: readonly [number, number];
  /** Maximum argument count after DISTINCT. Default: the same as without DISTINCT. */
  readonly distinctMax?: number;
  /** Returns whether the type is valid for the first argument. Default: every type except intervals. */
  readonly accepts?: (type: Type) => boolean;
  /** Maximum number of levels of a quantile function, and its default level. */
  readonly levels?: { readonly max: number; readonly byDefault?: number };
  /** Result type, or a function that returns it for the argument types. For Nothing, the result is Nothing. */
  readonly returns: Type | ((type: Type, other: Type | undefined) => Type);
  readonly postgres: (call: Aggregated, writer: Writer) => string;
}

/** Maximum number of values in a distinct count. */
const VALUES_MAX = 16;

const sumType = (type: Type): Type => (type.name === "Float64" ? FLOAT64 : widthOf(type).signed ? INT64 : UINT64);
const count: AggregateFunction = {
  docs: ["count()", "Number of rows. In per-unit tables, use sum(count) for events."],
  takes: [0, 1],
  distinctMax: VALUES_MAX,
  returns: UINT64,
  postgres: countSql,
};
const sum: AggregateFunction = {
  docs: ["sum(x)", "Sum; 0 without rows."],
  accepts: isNumeric,
  returns: (type) => withNull(sumType(type), type.nullable),
  postgres: sumSql,
};
const average: AggregateFunction = {
  docs: ["avg(x)", "Mean; null without rows."],
  accepts: isNumeric,
  returns: (type) => withNull(FLOAT64, type.nullable),
  postgres: averageSql,
};
const distinct = (docs: Docs): AggregateFunction => ({
  docs,
  takes: [1, VALUES_MAX],
  returns: UINT64,
  postgres: distinctSql,
});
const sameType = (docs: Docs, postgres: AggregateFunction["postgres"]): AggregateFunction => ({
  docs,
  returns: (type) => type,
  postgres,
});
const ofElements = (docs: Docs, postgres: AggregateFunction["postgres"]): AggregateFunction => ({
  docs,
  returns: (type) => arrayOf(withNull(type, false)),
  postgres,
});

const quantile: AggregateFunction = {
  docs: [
    "quantile(0.99)(x)",
    "Quantile at this level; default 0.5. ClickHouse approximates it in groups of more than 8,192 rows.",
  ],
  accepts: (type) => isNumeric(type) || isDate(type),
  levels: { max: 1, byDefault: 0.5 },
  returns: (type) => (isDate(type) ? type : withNull(FLOAT64, type.nullable)),
  postgres: quantileSql,
};
const extremeArgument = (docs: Docs, direction: "asc" | "desc"): AggregateFunction => ({
  docs,
  takes: [2, 2],
  returns: (type, other) => withNull(type, type.nullable || other?.nullable === true),
  postgres: extremeArgumentSql(direction),
});

export const AGGREGATE_FUNCTIONS: Readonly<Record<string, AggregateFunction>> = {
  count,
  countIf: {
    ...count,
    takes: [0, 0],
    docs: ["countIf(condition)", "Number of rows that meet the condition."],
    conditionalOf: "count",
  },
  sum,
  sumIf: {
    ...sum,
    docs: ["sumIf(x, condition)", "Sum over the rows that meet the condition."],
    conditionalOf: "sum",
  },
  avg: average,
  avgIf: {
    ...average,
    docs: ["avgIf(x, condition)", "Mean over the rows that meet the condition."],
    conditionalOf: "avg",
  },
  min: sameType(["min(x)", "Minimum."], extremeSql("min")),
  max: sameType(["max(x)", "Maximum."], extremeSql("max")),
  // In Postgres, `any` returns the minimum, so that the result is deterministic. ClickHouse does not move arithmetic out of `any`, in
  // contrast to `min`.
  any: sameType(["any(x)", "Value of any row."], (call, writer) =>
    extremeSql("min", false)({ ...call, distinct: false }, writer),
  ),
  groupArray: ofElements(["groupArray(x)", "Array of all values."], groupArraySql(false)),
  groupUniqArray: ofElements(["groupUniqArray(x)", "Array of the distinct values."], groupArraySql(true)),
  uniq: distinct(["uniq(x)", "Number of distinct values."]),
  uniqIf: {
    ...distinct(["uniqIf(x, condition)", "Number of distinct values in the rows that meet the condition."]),
    conditionalOf: "uniq",
  },
  uniqExact: distinct(["uniqExact(x)", "Number of distinct values."]),
  argMax: extremeArgument(
    [
      "argMax(x, y)",
      "x of the row with the largest y. Among equal y, Postgres returns the smallest x and ClickHouse any x.",
    ],
    "desc",
  ),
  argMin: extremeArgument(
    [
      "argMin(x, y)",
      "x of the row with the smallest y. Among equal y, Postgres returns the smallest x and ClickHouse any x.",
    ],
    "asc",
  ),
  quantile,
  median: { ...quantile, docs: ["median(x)", "Quantile at level 0.5."] },
  quantiles: {
    docs: ["quantiles(0.5, 0.99)(x)", "Array of the quantiles at these levels."],
    accepts: isNumeric,
    levels: { max: 16 },
    returns: () => arrayOf(FLOAT64),
    postgres: quantilesSql,
  },
};
