import type { Token } from "../lex.ts";
import { quote } from "../problem.ts";
import type { Expression, IntervalUnit } from "../tree.ts";
import type { Cursor } from "./cursor.ts";
import type { Grammar } from "./grammar.ts";
import { NO_EXPRESSION } from "./reserved.ts";

const UNITS: ReadonlySet<string> = new Set<IntervalUnit>([
  "nanosecond",
  "microsecond",
  "millisecond",
  "second",
  "minute",
  "hour",
  "day",
  "week",
  "month",
  "quarter",
  "year",
]);

/** Returns whether the word INTERVAL at the cursor begins an interval. It may also be a name. */
export function startsInterval(cursor: Cursor): boolean {
  const after = cursor.peek(1);
  if (after.kind === "sign") return after.text === "(" || (after.text === "-" && cursor.peek(2).kind === "number");
  return after.kind !== "end" && !(after.kind === "word" && NO_EXPRESSION.has(after.text.toLowerCase()));
}

/** Parses `INTERVAL 7 DAY`, `INTERVAL '7' DAY` or `INTERVAL '7 day'`. Units may be plural. */
export function readInterval(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.next();
  const string = cursor.peek();
  const [, digits, unitInText] = string.kind === "string" ? (AMOUNT_AND_UNIT.exec(string.text) ?? []) : [];
  if (digits !== undefined && unitInText !== undefined) {
    const unit = unitOf(unitInText);
    if (unit === undefined) throw cursor.problem(`${quote(unitInText)} is not a unit of time`);
    cursor.next();
    return { kind: "interval", amount: number(digits, string), unit, span: cursor.since(first) };
  }
  const amount = grammar.expression();
  const token = cursor.peek();
  const unit = token.kind === "word" ? unitOf(token.text) : undefined;
  if (unit === undefined) throw cursor.unexpected(`a unit after ${quote("INTERVAL")}, such as DAY,`);
  cursor.next();
  return { kind: "interval", amount, unit, span: cursor.since(first) };
}

const AMOUNT_AND_UNIT = /^\s*(-?[0-9]+)\s+([A-Za-z]+)\s*$/;

function number(text: string, { span }: Token): Expression {
  if (!text.startsWith("-")) return { kind: "number", text, span };
  return { kind: "unary", operator: "-", operand: { kind: "number", text: text.slice(1), span }, span };
}

function unitOf(word: string): IntervalUnit | undefined {
  const singular = word.toLowerCase().replace(/s$/, "");
  return UNITS.has(singular) ? (singular as IntervalUnit) : undefined;
}
