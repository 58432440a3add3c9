import { isInteger, type Type } from "../resolve/types.ts";

/** Returns the Postgres type for values of the type. All integer types map to one type. */
export function typeName(type: Type): string {
  if (isInteger(type)) return "bigint";
  switch (type.name) {
    case "Float64":
      return "double precision";
    case "Bool":
      return "boolean";
    case "Date":
      return "date";
    case "DateTime":
    case "DateTime64":
      return "timestamp";
    case "Interval":
      return "interval";
    case "Array":
      return `${typeName(type.of)}[]`;
    default:
      return "text";
  }
}

/** Returns ClickHouse's default for a missing value, as in an aggregate over no rows or on the side of an outer join without a match. */
export function defaultOf(type: Type): string {
  switch (type.name) {
    case "String":
      return "''";
    case "Bool":
      return "false::boolean";
    case "Array":
      return `'{}'::${typeName(type)}`;
    case "Date":
    case "DateTime":
    case "DateTime64":
      return `'1970-01-01'::${typeName(type)}`;
    default:
      return `0::${typeName(type)}`;
  }
}

/** Emits the value, or the type's default if the value is null; nullable types keep null. */
export const orDefault = (sql: string, type: Type): string =>
  type.nullable ? sql : `coalesce(${sql}, ${defaultOf(type)})`;
