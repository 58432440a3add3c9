import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import type { Literal, ResolvedExpression } from "./resolved.ts";
import {
  FLOAT64,
  INT64,
  integer,
  isDate,
  isInteger,
  isNumeric,
  NOTHING,
  STRING,
  type Type,
  typeText,
  UINT64,
  zoneOf,
} from "./types.ts";
import { instantOf } from "./zones.ts";

const literal = (value: Literal["value"], type: Type, span: Span): Literal => ({ kind: "literal", value, type, span });

export const stringLiteral = (value: string, span: Span): Literal => literal(value, STRING, span);
export const nullLiteral = (span: Span): Literal => literal(null, NOTHING, span);
export const valueLiteral = literal;

/** Returns a number literal with the narrowest type that can represent it. Integers beyond 64 bits become floats. */
export function numberLiteral(text: string, span: Span): Literal {
  const digits = text.replaceAll("_", "");
  if (/^-?\d+$/.test(digits)) return integerLiteral(BigInt(digits), span);
  if (/^0x[0-9a-f]+$/i.test(digits)) return integerLiteral(BigInt(digits), span);
  const value = Number(digits);
  if (Number.isNaN(value)) throw invalidQuery(`${text} is not a number that can be used here`, span);
  return literal(value, FLOAT64, span);
}

export function integerLiteral(value: bigint, span: Span): Literal {
  if (value < -(2n ** 63n) || value >= 2n ** 64n) return literal(Number(value), FLOAT64, span);
  return literal(value, integer(bitsOf(value), value < 0n), span);
}

const bitsOf = (value: bigint): number =>
  value < 0n ? (-value - 1n).toString(2).length + 1 : value.toString(2).length;

export const isStringLiteral = (expression: ResolvedExpression): expression is Literal & { readonly value: string } =>
  expression.kind === "literal" && expression.type.name === "String";

/** Parses a string as a literal of the expected type, such as a date that is compared with a column. */
export function readAs(type: Type, text: string, span: Span): Literal {
  if (isDate(type)) return dateLiteral(type, text, span);
  if (isInteger(type)) return wholeNumber(text, span);
  if (isNumeric(type) && type.name !== "Bool") return floatNumber(text, span);
  if (type.name === "Bool" && /^(true|false)$/i.test(text))
    return literal(text.toLowerCase() === "true", { ...type, nullable: false }, span);
  throw invalidQuery(`'${text}' cannot be read as ${typeText(type)}`, span);
}

function wholeNumber(text: string, span: Span): Literal {
  if (!/^[+-]?\d+$/.test(text)) throw invalidQuery(`'${text}' is not a whole number`, span);
  const value = BigInt(text);
  return literal(BigInt.asIntN(64, value), value >= 2n ** 63n ? UINT64 : INT64, span);
}

function floatNumber(text: string, span: Span): Literal {
  const value = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : NAMED_FLOATS[text.toLowerCase()];
  if (value === undefined) throw invalidQuery(`'${text}' is not a number`, span);
  return literal(value, FLOAT64, span);
}

const NAMED_FLOATS: Readonly<Record<string, number>> = {
  nan: Number.NaN,
  inf: Number.POSITIVE_INFINITY,
  "-inf": Number.NEGATIVE_INFINITY,
};

const DATE_AND_TIME = /^(\d{4})-(\d\d)-(\d\d)(?:[ T](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?)?(Z|[+-]\d\d:\d\d)?$/;

const FIRST_MS = 0;
/** Maximum Date and DateTime, which ClickHouse stores as a UInt16 of days and a UInt32 of seconds. */
const LAST_DATE_MS = Date.UTC(2149, 5, 6);
const LAST_DATE_TIME_MS = (2 ** 32 - 1) * 1000;

/** Returns whether the text is a date, optionally with a time, in the form that `readAs` accepts. */
export const isDateText = (text: string): boolean => DATE_AND_TIME.test(text);

function dateLiteral(type: Type, text: string, span: Span): Literal {
  const found = DATE_AND_TIME.exec(text);
  const day = found && new Date(`${found[1]}-${found[2]}-${found[3]}T00:00:00Z`);
  const [hour, minute, second] = [4, 5, 6].map((group) => Number(found?.[group] ?? 0)) as [number, number, number];
  if (!day || day.getUTCDate() !== Number(found[3]) || hour > 23 || minute > 59 || second > 59) {
    throw invalidQuery(`'${text}' is not a date as 2024-01-31 or a time as 2024-01-31 23:59:59`, span);
  }
  const localMs = day.getTime() + ((hour * 60 + minute) * 60 + second) * 1000;
  const zone = zoneOf(type);
  const ms = found[8] === undefined && zone !== undefined ? instantOf(localMs, zone) : localMs - zoneMs(found[8]);
  return literal(timestampText(type, ms, found[7] ?? ""), { ...type, nullable: false } as Type, span);
}

function zoneMs(zone: string | undefined): number {
  if (zone === undefined || zone === "Z") return 0;
  const [hours, minutes] = zone.slice(1).split(":").map(Number) as [number, number];
  return (zone.startsWith("-") ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

/** Formats a timestamp as a literal of the type, clamped to the range of the type. */
function timestampText(type: Type, ms: number, fraction: string): string {
  const last = type.name === "Date" ? LAST_DATE_MS : LAST_DATE_TIME_MS;
  const iso = new Date(type.name === "DateTime64" ? ms : Math.min(Math.max(ms, FIRST_MS), last)).toISOString();
  if (type.name === "Date") return iso.slice(0, 10);
  const seconds = iso.slice(0, 19).replace("T", " ");
  if (type.name !== "DateTime64" || type.scale === 0) return seconds;
  return `${seconds}.${fraction.padEnd(type.scale, "0").slice(0, type.scale)}`;
}

/** Formats seconds since 1970 as DateTime text. */
export const secondsText = (seconds: number): string =>
  timestampText({ name: "DateTime", nullable: false }, seconds * 1000, "");
