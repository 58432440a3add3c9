import { invalidQuery } from "../problem.ts";
import type { Span } from "../tree.ts";
import { sharedType } from "./common-type.ts";
import { call, type ResolvedExpression } from "./resolved.ts";
import { isNumeric, typeText } from "./types.ts";

/** Resolves alternating conditions and values, followed by a default value. */
export function choice(args: readonly ResolvedExpression[], span: Span): ResolvedExpression {
  const isValue = (_: ResolvedExpression, index: number) => index % 2 === 1 || index === args.length - 1;
  args.filter((argument, index) => !isValue(argument, index)).forEach(checkCondition);
  const type = sharedType(args.filter(isValue), span);
  return call("multiIf", args, type, span, type.nullable);
}

/**
 * Condition of a function, such as `if`. It must be a Bool or a comparison, as in ClickHouse.
 * @throws QueryProblem
 */
export function checkCondition({ type, span }: ResolvedExpression): void {
  if (["UInt8", "Bool", "Nothing"].includes(type.name)) return;
  throw invalidQuery(`a condition is a comparison or a Bool, not ${typeText(type)}`, span);
}

/**
 * Condition of a clause or an operand of AND, which may be any number.
 * @throws QueryProblem
 */
export function checkTruth({ type, span }: ResolvedExpression): void {
  if (!isNumeric(type) && type.name !== "Nothing") throw invalidQuery(`a condition cannot be ${typeText(type)}`, span);
}
