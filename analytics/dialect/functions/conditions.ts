import { invalidQuery } from "../problem.ts";
import { sharedType } from "../resolve/common-type.ts";
import { choice } from "../resolve/conditions.ts";
import { call, type ResolvedExpression } from "../resolve/resolved.ts";
import { withNull } from "../resolve/types.ts";
import type { ScalarFunction } from "./entry.ts";

export const CONDITIONAL_FUNCTIONS: Readonly<Record<string, ScalarFunction>> = {
  if: {
    docs: ["if(condition, a, b)", "a if the condition is true, otherwise b."],
    resolve: (called) => {
      const { name, args, span } = called;
      if (args.length !== 3) throw invalidQuery(`${name} takes 3 arguments, not ${args.length}`, span);
      return choice(args, span);
    },
  },
  coalesce: {
    docs: ["coalesce(x, …)", "First value that is not null."],
    resolve: ({ name, args, span }) => {
      if (args.length === 0) throw invalidQuery(`${name} takes at least 1 argument`, span);
      const nullable = args.every((argument) => argument.type.nullable);
      return call("coalesce", args, withNull(sharedType(args, span), nullable), span, nullable);
    },
    postgres: (call, writer) => `coalesce(${call.arguments.map((one) => writer.as(one, call.type)).join(", ")})`,
  },
};

/** Resolved form of `if` and CASE: alternating conditions and values, then a default value. */
export const MULTI_IF: ScalarFunction = {
  postgres: ({ arguments: args, type }, writer) => {
    const branches: string[] = [];
    for (let index = 0; index + 2 < args.length; index += 2) {
      const [condition, value] = args.slice(index, index + 2) as [ResolvedExpression, ResolvedExpression];
      branches.push(`when ${writer.truth(condition)} then ${writer.as(value, type)}`);
    }
    return `(case ${branches.join(" ")} else ${writer.as(args.at(-1) as ResolvedExpression, type)} end)`;
  },
};
