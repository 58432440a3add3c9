import { invalidQuery } from "../problem.ts";
import { Identities } from "../resolve/identity.ts";
import type { ResolvedArrayJoin, ResolvedBody, ResolvedExpression, ResolvedSelect } from "../resolve/resolved.ts";
import { sameType, type Type } from "../resolve/types.ts";
import { indexedText } from "./comparisons.ts";
import { widened } from "./conversions.ts";
import { type Names, truthSql, valueSql } from "./expression.ts";
import { filledSql, hasFill, keyName } from "./fill.ts";
import { type FromWriter, fromSql, type WrittenFrom } from "./from.ts";
import { KEY_TOTALS, readsKeyTotals } from "./key-totals.ts";
import { mayBeNaN } from "./nan.ts";
import { orderSql } from "./order.ts";
import type { Parameters } from "./parameters.ts";
import { orDefault } from "./type-names.ts";
import type { Writer } from "./writer.ts";

/** State that all SELECTs of a statement share. */
export interface Statement {
  readonly parameters: Parameters;
  readonly nowMs: number;
  readonly workspaceId: string | undefined;
  readonly commonTypes: (index: number) => readonly Type[];
}

/** Emits a SELECT or set operation whose columns c1, c2, … have these types. */
export function bodySql(body: ResolvedBody, types: readonly Type[], statement: Statement): string {
  if (body.kind === "select") return selectSql(body, types, statement);
  const [left, right] = [body.left, body.right].map((side) => bodySql(side, types, statement));
  return `(${left}) ${OPERATORS[body.operator]} (${right})`;
}

/** For each row of the right side, EXCEPT ALL removes one equal row of the left side. */
const OPERATORS = {
  "union all": "union all",
  "union distinct": "union",
  except: "except all",
  "except distinct": "except",
} as const;

function selectSql(select: ResolvedSelect, types: readonly Type[], statement: Statement): string {
  const totals = readsKeyTotals(select) ? KEY_TOTALS : undefined;
  const from = fromSql(select.from, fromWriter(statement, totals));
  const names = namesOf(from, select.arrayJoins);
  const groupsCanBeEmpty = select.aggregated && select.groupBy.length === 0;
  const writer = writerOf(statement, names, groupsCanBeEmpty);
  const inner = orderedAfter(select, types);
  const columns = select.columns.map(
    (column, index) => `${writer.as(column, types[index] ?? column.type)} as c${index + 1}`,
  );
  const filters = select.aggregated ? [select.where] : [select.where, select.having];
  const where = filters.flatMap((filter) => (filter ? [writer.truth(filter)] : []));
  const fills = hasFill(select);
  const isKeyed = fills || select.limitBy !== undefined;
  const keys = isKeyed && !select.distinct ? keyColumns(select, writer) : [];
  const parts = [
    `select ${select.distinct ? "distinct " : ""}${[...columns, ...keys].join(", ")}`,
    `from ${from.sql}${arrayJoinsSql(select, writer)}`,
    ...(where.length > 0 ? [`where ${where.join(" and ")}`] : []),
    ...(select.groupBy.length > 0 ? [`group by ${select.groupBy.map((key) => writer.value(key)).join(", ")}`] : []),
    ...(select.aggregated && select.having ? [`having ${writer.truth(select.having)}`] : []),
  ];
  const rows = rowsSql(select, statement.parameters);
  if (!inner && !isKeyed) return [...parts, ...orderClause(select, writer), ...rows].join(" ");
  const outer = writerOf(statement, NO_NAMES, false, outputsOf(select));
  const outputs = select.columns.map((_, index) => `d.c${index + 1}`).join(", ");
  const rowsOf = (sql: string) => `select ${outputs} from (${sql}) as d`;
  if (!isKeyed) return [rowsOf(parts.join(" ")), ...orderClause(select, outer), ...rows].join(" ");
  const keyed = select.distinct
    ? `select ${[outputs, ...keyColumns(select, outer)].join(", ")} from (${parts.join(" ")}) as d`
    : parts.join(" ");
  const byKeys = writerOf(statement, NO_NAMES, false, keysOf(select));
  const limited = limitedSql(select, keyed, byKeys);
  if (fills) return [filledSql({ select, types, rows: limited }, outer), ...rows].join(" ");
  return [rowsOf(limited), ...orderClause(select, byKeys), ...rows].join(" ");
}

/** Emits the keys of ORDER BY and of LIMIT BY as additional columns. */
const keyColumns = ({ orderBy, limitBy }: ResolvedSelect, writer: Writer): readonly string[] => [
  ...orderBy.map(({ expression }, index) => `${writer.value(expression)} as ${keyName(index)}`),
  ...(limitBy?.by ?? []).map((key, index) => `${groupKeySql(key, writer)} as ${groupName(index)}`),
];

const groupName = (index: number): string => `g${index + 1}`;

/** Emits a key of LIMIT BY. Floats are rejected, because ClickHouse distinguishes 0 and -0 there. */
function groupKeySql(key: ResolvedExpression, writer: Writer): string {
  if (key.type.name === "Float64") throw invalidQuery("LIMIT BY of floats is not supported", key.span);
  return writer.value(key);
}

/** Emits the rows that LIMIT BY keeps, in any order. The rows have the columns of `keyColumns`. */
function limitedSql(select: ResolvedSelect, rows: string, byKeys: Writer): string {
  const { columns, orderBy, limitBy } = select;
  if (limitBy === undefined) return rows;
  const { limit, offset, by } = limitBy;
  const kept = [...columns.map((_, index) => `d.c${index + 1}`), ...orderBy.map((_, index) => `d.${keyName(index)}`)];
  const partition = by.map((_, index) => `d.${groupName(index)}`).join(", ");
  const over = [...(partition ? [`partition by ${partition}`] : []), ...orderClause(select, byKeys)].join(" ");
  const { parameters } = byKeys;
  return [
    `select ${kept.join(", ")} from (select d.*, row_number() over (${over}) as n from (${rows}) as d) as d`,
    `where d.n > ${parameters.bigint(offset)} and d.n - ${parameters.bigint(offset)} <= ${parameters.bigint(limit)}`,
  ].join(" ");
}

const orderClause = ({ orderBy, from }: ResolvedSelect, writer: Writer): readonly string[] => {
  if (orderBy.length === 0) return [];
  // Returns whether the expression is a stored column. The SELECT must read a single table, because columns of an outer join may be null.
  const isStored = ({ kind }: ResolvedExpression) => kind === "column" && from.kind === "table";
  return [`order by ${orderBy.map((one) => orderSql(one, writer, isStored)).join(", ")}`];
};

const rowsSql = ({ limit, offset }: ResolvedSelect, parameters: Parameters): readonly string[] => [
  ...(limit === undefined ? [] : [`limit ${parameters.bigint(limit)}`]),
  ...(offset === undefined ? [] : [`offset ${parameters.bigint(offset)}`]),
];

/** Postgres can sort DISTINCT rows only by their columns, so sorting by an expression or as another type requires an enclosing SELECT. */
function orderedAfter({ distinct, orderBy, columns }: ResolvedSelect, types: readonly Type[]): boolean {
  if (!distinct || orderBy.length === 0) return false;
  const identities = new Identities();
  const asTheyAre = columns.filter(({ type }, index) => sameType(types[index] ?? type, type));
  const outputs = new Set(asTheyAre.map((column) => identities.of(column)));
  return orderBy.some(({ expression }) => mayBeNaN(expression) || !outputs.has(identities.of(expression)));
}

/** Returns a lookup from an expression to the equal column of DISTINCT rows. */
function outputsOf({ columns }: ResolvedSelect): (expression: ResolvedExpression) => string | undefined {
  const identities = new Identities();
  const outputs = new Map(columns.map((column, index) => [identities.of(column), `d.c${index + 1}`]));
  return (expression) => outputs.get(identities.of(expression));
}

/** Returns a lookup from an ORDER BY expression to its column. */
function keysOf({ orderBy }: ResolvedSelect): (expression: ResolvedExpression) => string | undefined {
  const identities = new Identities();
  const keys = new Map(orderBy.map(({ expression }, index) => [identities.of(expression), `d.${keyName(index)}`]));
  return (expression) => keys.get(identities.of(expression));
}

function arrayJoinsSql({ arrayJoins }: ResolvedSelect, writer: Writer): string {
  return arrayJoins
    .map(({ operand, by }, index) => {
      const [join, on] = by === "left" ? ["left", " on true"] : ["cross", ""];
      return ` ${join} join lateral unnest(${writer.value(operand)}) as ${arrayJoinName(index)}(v)${on}`;
    })
    .join("");
}

const arrayJoinName = (index: number): string => `a${index}`;

const namesOf = ({ columns }: WrittenFrom, arrayJoins: readonly ResolvedArrayJoin[]): Names => ({
  column: (source, index) => {
    const name = columns.get(source)?.[index];
    if (name === undefined) throw new RangeError(`source ${source} has no column ${index}`);
    return name;
  },
  arrayJoin: (index) => {
    const { operand, by } = arrayJoins[index] ?? {};
    const element = `${arrayJoinName(index)}.v`;
    return by === "left" && operand?.type.name === "Array" ? orDefault(element, operand.type.of) : element;
  },
});

/** Names for clauses that can refer only to the result columns. */
const NO_NAMES: Names = {
  column: () => {
    throw new RangeError("no column is left");
  },
  arrayJoin: () => {
    throw new RangeError("no array is left");
  },
};

/** Creates the writer of a FROM. `instead` replaces the table's usual view. */
const fromWriter = (statement: Statement, instead?: string): FromWriter => ({
  table: (name) => tableSql(instead ?? name, statement),
  body: (body) => bodySql(body, body.types, statement),
  commonTypes: statement.commonTypes,
  condition: (on, columns) => writerOf(statement, namesOf({ sql: "", columns }, []), false).truth(on),
});

/**
 * Adds a condition on the workspace with a plain value. It does not change which rows are visible, because the view restricts them. It only
 * helps the planner, which can estimate the row count from this condition but not from the view's bound.
 */
function tableSql(name: string, { parameters, workspaceId }: Statement): string {
  if (workspaceId === undefined) return `analytics.${name}`;
  const isOwn = `${indexedText("v.workspace_id")} = ${indexedText(parameters.text(workspaceId))}`;
  return `(select v.* from analytics.${name} as v where ${isOwn})`;
}

/** Expression kinds that cannot be computed from DISTINCT rows. */
const OF_ROWS: readonly ResolvedExpression["kind"][] = ["column", "arrayJoin", "aggregate", "window"];

/** Creates a writer. `outputs` returns the name of the column that already contains an expression, if there is one. */
function writerOf(
  statement: Statement,
  names: Names,
  groupsCanBeEmpty: boolean,
  outputs?: (expression: ResolvedExpression) => string | undefined,
): Writer {
  const writer: Writer = {
    parameters: statement.parameters,
    nowMs: statement.nowMs,
    groupsCanBeEmpty,
    value: (expression) => {
      const output = outputs?.(expression);
      if (output !== undefined) return output;
      if (outputs && OF_ROWS.includes(expression.kind)) {
        throw invalidQuery("DISTINCT rows are ordered and limited by their columns alone", expression.span);
      }
      return valueSql(expression, writer, names);
    },
    truth: (expression) => {
      if (outputs?.(expression) === undefined) return truthSql(expression, writer);
      return expression.type.name === "Bool" ? writer.value(expression) : `(${writer.value(expression)} <> 0)`;
    },
    as: (expression, type) => widened(expression, type, writer),
    body: (body, types) => bodySql(body, types, statement),
  };
  return writer;
}
