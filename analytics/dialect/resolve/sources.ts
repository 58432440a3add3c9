import { type ColumnType, PUBLIC_TABLES, type PublicTable } from "../../tables.ts";
import { invalidQuery } from "../problem.ts";
import type { Expression, From, Identifier, Join, Query, TableReference } from "../tree.ts";
import { comparison } from "./comparison.ts";
import { choice } from "./conditions.ts";
import { valueLiteral } from "./literals.ts";
import type { JoinSource, ResolvedBody, ResolvedExpression, Source } from "./resolved.ts";
import { columnOf, type MergedColumn, type VisibleSource } from "./scope.ts";
import { arrayOf, STRING, type Type } from "./types.ts";

/** Named columns of a query, as an enclosing query sees them. */
export interface NamedBody {
  readonly body: ResolvedBody;
  readonly names: readonly string[];
}

/** Context in which a FROM is resolved. */
export interface QueryScope {
  /** Assigns an id to a source; `body` is defined for a subquery. */
  readonly add: (source: Omit<VisibleSource, "id">, body: ResolvedBody | undefined) => VisibleSource;
  readonly derived: (query: Query) => NamedBody;
  readonly common: (name: Identifier) => (NamedBody & { readonly index: number }) | undefined;
  readonly isRawTime: (expression: ResolvedExpression) => boolean;
  /** Resolves a join condition over the sources joined so far. */
  readonly condition: (expression: Expression, from: Visible) => ResolvedExpression;
}

export interface Visible {
  readonly sources: readonly VisibleSource[];
  readonly merged: readonly MergedColumn[];
}

export interface ResolvedFrom extends Visible {
  readonly source: Source;
}

const typeOfColumn = (type: ColumnType): Type =>
  type === "Array(String)" ? arrayOf(STRING) : { name: type, nullable: false };

const columnsOf = (table: PublicTable): VisibleSource["columns"] =>
  Object.entries(table.columns).map(([name, type]) => ({ name, type: typeOfColumn(type) }));

export function resolveFrom(from: From, around: QueryScope): ResolvedFrom {
  switch (from.kind) {
    case "table":
      return tableSource(from, around);
    case "derived": {
      const { body, names } = around.derived(from.query);
      const columns = columnsOfBody(body, names);
      const visible = around.add({ names: from.alias ? [from.alias.text] : [], columns, table: undefined }, body);
      return { source: { kind: "derived", id: visible.id, body }, sources: [visible], merged: [] };
    }
    case "join":
      return joinSource(from, around);
  }
}

const columnsOfBody = ({ types }: ResolvedBody, names: readonly string[]): VisibleSource["columns"] =>
  types.map((type, index) => ({ name: names[index] ?? "", type }));

function tableSource({ name, alias, span }: TableReference, around: QueryScope): ResolvedFrom {
  const names = alias ? [alias.text, name.text] : [name.text];
  const common = around.common(name);
  if (common) {
    const columns = columnsOfBody(common.body, common.names);
    const visible = around.add({ names, columns, table: undefined }, common.body);
    return { source: { kind: "common", id: visible.id, index: common.index }, sources: [visible], merged: [] };
  }
  const table = PUBLIC_TABLES.find((one) => one.name === name.text);
  if (!table) throw invalidQuery(`there is no table ${name.text}`, span);
  const visible = around.add({ names, columns: columnsOf(table), table }, undefined);
  return { source: { kind: "table", id: visible.id, table }, sources: [visible], merged: [] };
}

function joinSource(join: Join, around: QueryScope): ResolvedFrom {
  const left = resolveFrom(join.left, around);
  const right = resolveFrom(join.right, around);
  const both = { sources: [...left.sources, ...right.sources], merged: [...left.merged, ...right.merged] };
  const name = twice(both.sources.map(({ names }) => names[0]));
  if (name !== undefined) throw invalidQuery(`two tables of the join are called ${name}: give them aliases`, join.span);
  const source = { kind: "join", type: join.type, left: left.source, right: right.source } as const;
  if (join.using.length > 0) return joinUsing(join, { left, right, source, around });
  if (join.on === undefined) {
    if (join.type !== "cross") throw invalidQuery("a join needs ON or USING", join.span);
    return { ...both, source: { ...source, on: undefined } };
  }
  return { ...both, source: { ...source, on: around.condition(join.on, both) } };
}

const twice = (names: readonly (string | undefined)[]): string | undefined =>
  names.find((name, index) => name !== undefined && names.indexOf(name) !== index);

interface Sides {
  readonly left: ResolvedFrom;
  readonly right: ResolvedFrom;
  readonly source: Omit<JoinSource, "on">;
  readonly around: QueryScope;
}

/** Merges the two columns of each name in USING into one column, which is taken from the side that keeps all rows. */
function joinUsing(join: Join, { left, right, source, around }: Sides): ResolvedFrom {
  const pairs = join.using.map((name) => ({ name, left: usingColumn(left, name), right: usingColumn(right, name) }));
  const conditions = pairs.map((pair) =>
    comparison("equals", [pair.left, pair.right], { span: pair.name.span, isRawTime: around.isRawTime }),
  );
  const on = conditions.reduce((all, one) => ({
    kind: "call",
    name: "and",
    arguments: [all, one],
    type: one.type,
    span: join.span,
  }));
  const merged = pairs.map(
    (pair): MergedColumn => ({
      name: pair.name.text,
      expression: mergedColumn(join, pair, around),
      of: [pair.left, pair.right].flatMap((side) => (side.kind === "column" ? [side] : [])),
    }),
  );
  return {
    source: { ...source, on },
    sources: [...left.sources, ...right.sources],
    merged: [...merged, ...left.merged],
  };
}

function usingColumn({ sources, merged }: ResolvedFrom, { text, span }: Identifier): ResolvedExpression {
  const known = merged.find(({ name }) => name === text);
  if (known) return known.expression;
  for (const source of sources) {
    const index = source.columns.findIndex(({ name }) => name === text);
    if (index >= 0) return columnOf(source, index, span);
  }
  throw invalidQuery(`there is no column ${text} on both sides of the join`, span);
}

function mergedColumn(
  join: Join,
  {
    left,
    right,
    name,
  }: { readonly left: ResolvedExpression; readonly right: ResolvedExpression; readonly name: Identifier },
  { isRawTime }: QueryScope,
): ResolvedExpression {
  if (join.type === "right") return right;
  if (join.type !== "full") return left;
  // In a full join, the merged column comes from the side that has a row. The other side has the type's default, which identifies a missing
  // row only for strings.
  if (left.type.name !== "String" || right.type.name !== "String") {
    throw invalidQuery("FULL JOIN … USING is supported for Strings alone: use ON", name.span);
  }
  const isThere = comparison("notEquals", [left, valueLiteral("", STRING, name.span)], { span: name.span, isRawTime });
  return choice([isThere, left, right], name.span);
}
