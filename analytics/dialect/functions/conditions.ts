import { invalidQuery } from "../problem.ts";
import { sharedType } from "../resolve/common-type.ts";
import { choice } from "../resolve/conditions.ts";
import { call, type ResolvedExpression } from "../resolve/resolved.ts";
import { withNull } from "../resolve/types.ts";
import type { Span } from "../tree.ts";
import type { PostgresSql, ScalarFunction } from "./entry.ts";

/** Returns the first value that is not null. Values after the first one that cannot be null are ignored. */
function firstKnown(args: readonly ResolvedExpression[], span: Span): ResolvedExpression {
  const nullable = args.every((argument) => argument.type.nullable);
  return call("coalesce", args, withNull(sharedType(args, span), nullable), span, nullable);
}

/** Emits `if`, `multiIf` and CASE. The arguments alternate conditions and values, and end with a default value. */
const multiIfSql: PostgresSql = ({ arguments: args, type }, writer) => {
  const branches: string[] = [];
  for (let index = 0; index + 2 < args.length; index += 2) {
    const [condition, value] = args.slice(index, index + 2) as [ResolvedExpression, ResolvedExpression];
    branches.push(`when ${writer.truth(condition)} then ${writer.as(value, type)}`);
  }
  return `(case ${branches.join(" ")} else ${writer.as(args.at(-1) as ResolvedExpression, type)} end)`;
};

export const CONDITIONAL_FUNCTIONS: Readonly<Record<string, ScalarFunction>> = {
  if: {
    docs: ["if(condition, a, b)", "a if the condition is true, otherwise b."],
    resolve: (called) => {
      const { name, args, span } = called;
      if (args.length !== 3) throw invalidQuery(`${name} takes 3 arguments, not ${args.length}`, span);
      return choice(args, span);
    },
  },
  multiIf: {
    docs: ["multiIf(condition, a, condition, b, c)", "Value after the first true condition, otherwise the last value."],
    resolve: ({ name, args, span }) => {
      if (args.length < 3 || args.length % 2 === 0)
        throw invalidQuery(`${name} takes conditions with a value each and a last value`, span);
      return choice(args, span);
    },
    postgres: multiIfSql,
  },
  ifNull: {
    docs: ["ifNull(x, y)", "x, or y if x is null."],
    resolve: (called) => {
      const { name, args, span } = called;
      if (args.length !== 2) throw invalidQuery(`${name} takes 2 arguments, not ${args.length}`, span);
      return firstKnown(args, span);
    },
  },
  coalesce: {
    docs: ["coalesce(x, …)", "First value that is not null."],
    resolve: ({ name, args, span }) => {
      if (args.length === 0) throw invalidQuery(`${name} takes at least 1 argument`, span);
      return firstKnown(args, span);
    },
    postgres: (call, writer) => `coalesce(${call.arguments.map((one) => writer.as(one, call.type)).join(", ")})`,
  },
};
