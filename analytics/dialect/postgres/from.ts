import type { ColumnType } from "../../tables.ts";
import type { JoinSource, ResolvedBody, ResolvedExpression, Source } from "../resolve/resolved.ts";
import type { Type } from "../resolve/types.ts";
import { defaultOf } from "./type-names.ts";

/** SQL of a FROM and the SQL names of its columns. */
export interface WrittenFrom {
  readonly sql: string;
  readonly columns: ReadonlyMap<number, readonly string[]>;
}

export interface FromWriter {
  /** Returns the view of schema `analytics` with this name. */
  readonly table: (name: string) => string;
  readonly body: (body: ResolvedBody) => string;
  /** Column types of a CTE. */
  readonly commonTypes: (index: number) => readonly Type[];
  readonly condition: (on: ResolvedExpression, columns: WrittenFrom["columns"]) => string;
}

export function fromSql(source: Source, writer: FromWriter): WrittenFrom {
  const name = "id" in source ? `t${source.id}` : "";
  switch (source.kind) {
    case "table": {
      const columns = Object.keys(source.table.columns).map((column) => `${name}."${column}"`);
      return { sql: `${writer.table(source.table.name)} as ${name}`, columns: new Map([[source.id, columns]]) };
    }
    case "common":
      return {
        sql: `${commonName(source.index)} as ${name}`,
        columns: new Map([[source.id, numbered(name, writer.commonTypes(source.index))]]),
      };
    case "derived":
      return {
        sql: `(${writer.body(source.body)}) as ${name}`,
        columns: new Map([[source.id, numbered(name, source.body.types)]]),
      };
    case "join":
      return joinSql(source, writer);
  }
}

/** Name of a CTE. */
export const commonName = (index: number): string => `w${index}`;

const numbered = (name: string, types: readonly Type[]): readonly string[] =>
  types.map((_, index) => `${name}.c${index + 1}`);

function joinSql(join: JoinSource, writer: FromWriter): WrittenFrom {
  const [left, right] = [fromSql(join.left, writer), fromSql(join.right, writer)];
  const inside = new Map([...left.columns, ...right.columns]);
  const on = join.on ? ` on ${writer.condition(join.on, inside)}` : "";
  const types = new Map([...typesOf(join.left, writer), ...typesOf(join.right, writer)]);
  const remainingFills = join.type === "right" || join.type === "full";
  const fillsRight = join.type === "left" || join.type === "full";
  return {
    sql: `(${left.sql} ${join.type} join ${right.sql}${on})`,
    columns: new Map([
      ...(remainingFills ? withDefaults(left, types) : left.columns),
      ...(fillsRight ? withDefaults(right, types) : right.columns),
    ]),
  };
}

/**
 * Replaces nulls by defaults. On the side of an outer join that has no matching row, columns have their type's default in ClickHouse, but
 * are null in Postgres.
 */
function withDefaults({ columns }: WrittenFrom, types: ReadonlyMap<number, readonly Type[]>): WrittenFrom["columns"] {
  return new Map(
    Array.from(columns, ([id, names]) => [
      id,
      names.map((name, index) => {
        const type = types.get(id)?.[index];
        return !type || type.nullable ? name : `coalesce(${name}, ${defaultOf(type)})`;
      }),
    ]),
  );
}

function typesOf(source: Source, writer: FromWriter): readonly (readonly [number, readonly Type[]])[] {
  switch (source.kind) {
    case "table":
      return [[source.id, Object.values(source.table.columns).map(typeOfColumn)]];
    case "common":
      return [[source.id, writer.commonTypes(source.index)]];
    case "derived":
      return [[source.id, source.body.types]];
    case "join":
      return [...typesOf(source.left, writer), ...typesOf(source.right, writer)];
  }
}

const typeOfColumn = (type: ColumnType): Type =>
  type === "Array(String)"
    ? { name: "Array", of: { name: "String", nullable: false }, nullable: false }
    : { name: type, nullable: false };
