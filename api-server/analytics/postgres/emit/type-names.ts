import { isInteger, type Type } from "../../dialect/resolve/types.ts";

/** The Postgres type that holds values of the type. All integers are one type. */
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

/** What ClickHouse has where a value is missing: in an aggregate without rows, or on the empty side of an outer join. */
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

/** The value, or the type's default where it is null; null itself for a type that has it. */
export const orDefault = (sql: string, type: Type): string =>
  type.nullable ? sql : `coalesce(${sql}, ${defaultOf(type)})`;
