import { type Type, typeText } from "../resolve/types.ts";

/** Returns the name of a type, including its time zone because the server default is unknown. */
export const typeSql = (type: Type): string =>
  typeText(type)
    .replace(/\bDateTime\b/g, "DateTime('UTC')")
    .replace(/\bDateTime64\((\d)\)/g, "DateTime64($1, 'UTC')");

export const clickhouseCast = (value: string, type: Type): string =>
  `CAST(${value}, '${typeSql(type).replaceAll("'", "\\'")}')`;
