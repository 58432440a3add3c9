import type { Span } from "../tree.ts";
import type { FunctionCall, FunctionName, ResolvedExpression } from "./resolved.ts";
import { type Type, withNull } from "./types.ts";

/** Creates a call of the function. The result is nullable if an argument is, unless `nullable` overrides this. */
export function call(
  name: FunctionName,
  args: readonly ResolvedExpression[],
  type: Type,
  span: Span,
  nullable = args.some((argument) => argument.type.nullable),
): FunctionCall {
  return { kind: "call", name, arguments: args, type: withNull(type, nullable), span };
}
