import type { IntervalUnit } from "../tree.ts";

/*
 * The types of expressions, as ClickHouse has them. Those of columns are in tables.ts; the narrow integers come from literals,
 * comparisons and `toInt32`. A value of type `Nothing` is always null.
 */

export type IntegerName = "UInt8" | "UInt16" | "UInt32" | "UInt64" | "Int8" | "Int16" | "Int32" | "Int64";

export type Type = ScalarType | DateTime64Type | ArrayType | IntervalType;

export interface ScalarType {
  readonly name: IntegerName | "Float64" | "String" | "Bool" | "Date" | "DateTime" | "Nothing";
  readonly nullable: boolean;
}

export interface DateTime64Type {
  readonly name: "DateTime64";
  /** Digits of a second's fraction, 0 to 9. */
  readonly scale: number;
  readonly nullable: boolean;
}

/** Elements may be nullable; an array itself is not. */
export interface ArrayType {
  readonly name: "Array";
  readonly of: Type;
  readonly nullable: false;
}

/** Only added to dates and subtracted from them. */
export interface IntervalType {
  readonly name: "Interval";
  readonly unit: IntervalUnit;
  readonly nullable: boolean;
}
