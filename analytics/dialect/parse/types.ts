import { lex } from "../lex.ts";
import { QueryProblem, quote } from "../problem.ts";
import type { Span } from "../tree.ts";
import { Cursor } from "./cursor.ts";

/** Parses a type, such as `Array(String)` or `DateTime64(3, 'UTC')`. Returns the source text without whitespace. */
export function readType(cursor: Cursor): string {
  const first = cursor.peek();
  if (first.kind !== "word") throw cursor.unexpected("a type");
  cursor.next();
  if (MORE_WORDS.has(cursor.peek().text.toLowerCase())) throw cursor.notServed("a type of several words");
  if (!cursor.takeSign("(")) return first.text;
  const parts: string[] = [];
  do parts.push(cursor.nested(() => readTypeArgument(cursor)));
  while (cursor.takeSign(","));
  cursor.expectSign(")");
  return `${first.text}(${parts.join(",")})`;
}

/** Further words of multi-word types such as `DOUBLE PRECISION`. They would otherwise be read as an alias. */
const MORE_WORDS: ReadonlySet<string> = new Set(["precision", "varying", "large", "signed", "unsigned"]);

function readTypeArgument(cursor: Cursor): string {
  const { kind, text } = cursor.peek();
  if (kind !== "number" && kind !== "string") return readType(cursor);
  cursor.next();
  return kind === "number" ? text : `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}

/** Parses the type in the string of `CAST(x, 'String')`. Problems have the span of the string. */
export function readTypeText(text: string, span: Span): string {
  try {
    const cursor = new Cursor(lex(text));
    const type = readType(cursor);
    if (cursor.peek().kind !== "end") throw cursor.unexpected("the end of the type");
    return type;
  } catch (error) {
    if (!(error instanceof QueryProblem)) throw error;
    throw new QueryProblem(error.kind, `${quote(text)} is not a type: ${error.detail}`, span);
  }
}
