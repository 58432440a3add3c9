import { invalidQuery } from "../problem.ts";
import type { FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { STRING } from "../resolve/types.ts";
import type { Span } from "../tree.ts";
import type { Writer } from "./writer.ts";

/** Emits LIKE with ClickHouse's escapes: a backslash escapes `%`, `_` and itself, and is literal before other characters. */
export const likeSql =
  (operator: "like" | "not like" | "ilike" | "not ilike"): ((call: FunctionCall, writer: Writer) => string) =>
  (call, writer) => {
    const [operand, pattern] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
    const text = pattern.kind === "literal" && typeof pattern.value === "string" ? pattern.value : undefined;
    if (text === undefined) throw invalidQuery("the pattern of LIKE is a string literal", pattern.span);
    // With collation C, only ASCII letters are compared case-insensitively.
    if (operator.endsWith("ilike") && /\P{ASCII}/u.test(text)) {
      throw invalidQuery("ILIKE is supported with ASCII letters alone", pattern.span);
    }
    return `(${writer.as(operand, STRING)} ${operator} ${writer.parameters.text(patternText(text, pattern.span))})`;
  };

function patternText(pattern: string, span: Span): string {
  return pattern.replace(/\\([\s\S]?)/g, (_, escaped: string) => {
    if (escaped === "") throw invalidQuery("a pattern cannot end in a backslash", span);
    return /[%_\\]/.test(escaped) ? `\\${escaped}` : `\\\\${escaped}`;
  });
}
