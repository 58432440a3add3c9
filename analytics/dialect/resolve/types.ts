import type { IntervalUnit } from "../tree.ts";

/*
 * Expression types as in ClickHouse; tables.ts defines the column types. Narrow integers result from literals, comparisons and `toInt32`. A
 * value of type `Nothing` is always null.
 */

export type IntegerName = "UInt8" | "UInt16" | "UInt32" | "UInt64" | "Int8" | "Int16" | "Int32" | "Int64";

export type Type = ScalarType | DateTime64Type | ArrayType | IntervalType;

export interface ScalarType {
  readonly name: IntegerName | "Float64" | "String" | "Bool" | "Date" | "DateTime" | "Nothing";
  readonly nullable: boolean;
  /** Time zone of a DateTime; `undefined` for UTC. */
  readonly zone?: string | undefined;
}

export interface DateTime64Type {
  readonly name: "DateTime64";
  /** Fraction digits of a second, 0 to 9. */
  readonly scale: number;
  readonly nullable: boolean;
  readonly zone?: string | undefined;
}

/** Array. Its elements may be nullable, but the array itself may not. */
export interface ArrayType {
  readonly name: "Array";
  readonly of: Type;
  readonly nullable: false;
}

/** Interval, which can only be added to a date or subtracted from one. */
export interface IntervalType {
  readonly name: "Interval";
  readonly unit: IntervalUnit;
  readonly nullable: boolean;
}

const of = (name: ScalarType["name"]): ScalarType => ({ name, nullable: false });

export const STRING = of("String");
export const FLOAT64 = of("Float64");
export const BOOL = of("Bool");
export const DATE = of("Date");
export const DATE_TIME = of("DateTime");
export const UINT8 = of("UInt8");
export const UINT32 = of("UInt32");
export const UINT64 = of("UInt64");
export const INT32 = of("Int32");
export const INT64 = of("Int64");
export const NOTHING: ScalarType = { name: "Nothing", nullable: true };
export const dateTime64 = (scale: number): DateTime64Type => ({ name: "DateTime64", scale, nullable: false });
export const arrayOf = (element: Type): ArrayType => ({ name: "Array", of: element, nullable: false });

const BITS: Readonly<Record<IntegerName, number>> = {
  UInt8: 8,
  UInt16: 16,
  UInt32: 32,
  UInt64: 64,
  Int8: 8,
  Int16: 16,
  Int32: 32,
  Int64: 64,
};

export const isIntegerName = (name: string): name is IntegerName => Object.hasOwn(BITS, name);
export const isInteger = ({ name }: Type): boolean => isIntegerName(name);
export const isDate = ({ name }: Type): boolean => name === "Date" || name === "DateTime" || name === "DateTime64";
/** Returns whether arithmetic accepts the type; a Bool counts as UInt8. */
export const isNumeric = (type: Type): boolean => isInteger(type) || type.name === "Float64" || type.name === "Bool";

/** Returns bits and sign of an integer; a Bool has 8 bits. */
export function widthOf({ name }: Type): { readonly bits: number; readonly signed: boolean } {
  return isIntegerName(name) ? { bits: BITS[name], signed: name.startsWith("I") } : { bits: 8, signed: false };
}

/** Returns the integer type with this width, up to 64 bits. */
export function integer(bits: number, signed: boolean): ScalarType {
  const kept = bits <= 8 ? 8 : bits <= 16 ? 16 : bits <= 32 ? 32 : 64;
  return of(`${signed ? "Int" : "UInt"}${kept}`);
}

/** Returns the type as nullable or not. Arrays are never nullable. */
export function withNull<T extends Type>(type: T, nullable: boolean): Type {
  return type.name === "Array" || type.name === "Nothing" || type.nullable === nullable ? type : { ...type, nullable };
}

/** Returns the time zone of a DateTime or DateTime64 other than UTC. */
export const zoneOf = (type: Type): string | undefined =>
  type.name === "DateTime" || type.name === "DateTime64" ? type.zone : undefined;

/** Returns the DateTime or DateTime64 in another zone, and other types as they are. */
export const withZone = (type: Type, zone: string | undefined): Type =>
  type.name === "DateTime" || type.name === "DateTime64" ? { ...type, zone } : type;

/** Returns the type in ClickHouse syntax. */
export function typeText(type: Type): string {
  const zone = zoneOf(type);
  const bare =
    type.name === "Array"
      ? `Array(${typeText(type.of)})`
      : type.name === "DateTime64"
        ? `DateTime64(${type.scale}${zone === undefined ? "" : `, '${zone}'`})`
        : zone !== undefined
          ? `DateTime('${zone}')`
          : type.name === "Interval"
            ? `Interval${type.unit[0]?.toUpperCase()}${type.unit.slice(1)}`
            : type.name;
  return type.nullable ? `Nullable(${bare})` : bare;
}

export const sameType = (one: Type, other: Type): boolean => typeText(one) === typeText(other);

/** Returns the name of a type with its time zone, because the default zone of the server is unknown. */
export const typeSql = (type: Type): string =>
  typeText(type)
    .replace(/\bDateTime\b(?!\()/g, "DateTime('UTC')")
    .replace(/\bDateTime64\((\d)\)/g, "DateTime64($1, 'UTC')");

export const clickhouseCast = (value: string, type: Type): string =>
  `CAST(${value}, '${typeSql(type).replaceAll("'", "\\'")}')`;
