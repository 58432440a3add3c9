import { integerDivisionSql, roundingSql } from "../postgres/arithmetic.ts";

import { floatSql, integerSql } from "../postgres/conversions.ts";
import type { Writer } from "../postgres/writer.ts";
import { invalidQuery } from "../problem.ts";
import { isStringLiteral, readAs } from "../resolve/literals.ts";
import { call, type FunctionCall, type ResolvedExpression } from "../resolve/resolved.ts";
import { FLOAT64, INT32, INT64, integer, isInteger, type Type, widthOf } from "../resolve/types.ts";
import { ANY, checked, INTEGER, literalInteger, NUMBER, type ScalarFunction } from "./entry.ts";

/** Rounding functions. Their number of digits must be a literal. */
const rounding = (name: "round" | "floor" | "ceil", meaning: string): ScalarFunction => ({
  docs: [`${name}(x, digits)`, meaning],
  resolve: (called) => {
    const args = checked(called, [NUMBER, INTEGER], 1);
    if (args.length > 1) literalInteger(args[1], called);
    return call(name, args, (args[0] as ResolvedExpression).type, called.span);
  },
  postgres: roundingSql(name),
});

const conversionTo = (
  type: Type,
  meaning: string,
  sql: (operand: ResolvedExpression, type: Type, writer: Writer) => string,
): ScalarFunction => {
  const name = `to${type.name}`;
  return {
    docs: [`${name}(x)`, meaning],
    resolve: (called) => {
      const [operand] = checked(called, [ANY]) as [ResolvedExpression];
      if (operand.type.name === "Array") throw invalidQuery(`${called.name} takes no Array`, operand.span);
      const value = isStringLiteral(operand) ? readAs(type, operand.value, operand.span) : operand;
      return call(name, [value], type, called.span);
    },
    postgres: ({ arguments: [operand] }: FunctionCall, writer) => sql(operand as ResolvedExpression, type, writer),
  };
};

export const NUMBER_FUNCTIONS: Readonly<Record<string, ScalarFunction>> = {
  round: rounding("round", "Rounded number. Ties are rounded to the even neighbor."),
  floor: rounding("floor", "Number rounded down."),
  ceil: rounding("ceil", "Number rounded up."),
  abs: {
    docs: ["abs(x)", "Absolute value."],
    takes: [NUMBER],
    returns: (args) => {
      const { type } = args[0] as ResolvedExpression;
      return isInteger(type) || type.name === "Bool" ? integer(widthOf(type).bits, false) : type;
    },
    postgres: ({ arguments: [operand], type }, writer) => `abs(${writer.as(operand as ResolvedExpression, type)})`,
  },
  intDiv: {
    docs: ["intDiv(a, b)", "Quotient of integers, rounded toward zero. Division by zero is an error."],
    takes: [INTEGER, INTEGER],
    returns: (args) => {
      const [a, b] = args.map(({ type }) => widthOf(type));
      return integer(a?.bits ?? 8, (a?.signed || b?.signed) ?? false);
    },
    postgres: integerDivisionSql,
  },
  toInt32: conversionTo(INT32, "32-bit integer.", integerSql),
  toInt64: conversionTo(INT64, "64-bit integer, truncated.", integerSql),
  toFloat64: conversionTo(FLOAT64, "Floating-point number.", (operand, _, writer) => floatSql(operand, writer)),
};
