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

/** Whether INTERVAL begins an interval where the cursor stands, and is not a name. */
export function startsInterval(cursor: Cursor): boolean {
  const after = cursor.peek(1);
  if (after.kind === "sign") return after.text === "(" || (after.text === "-" && cursor.peek(2).kind === "number");
  return after.kind !== "end" && !(after.kind === "word" && NO_EXPRESSION.has(after.text.toLowerCase()));
}

/** `INTERVAL 7 DAY`, `INTERVAL '7' DAY`, `INTERVAL '7 day'`. Units may be in the plural. */
export function readInterval(grammar: Grammar): Expression {
  const { cursor } = grammar;
  const first = cursor.next();
  const amount = grammar.expression();
  const inText = amount.kind === "string" ? /^\s*(-?[0-9]+)\s+([A-Za-z]+)\s*$/.exec(amount.value) : null;
  const token = cursor.peek();
  const unit = unitOf(token.kind === "word" ? token.text : "");
  if (inText !== null && unit === undefined) {
    const unitInText = unitOf(inText[2] ?? "");
    if (unitInText === undefined) throw cursor.unexpected("a unit in the text of INTERVAL, such as '7 day',");
    return { kind: "interval", amount: number(inText[1] ?? "", amount), unit: unitInText, span: cursor.since(first) };
  }
  if (unit === undefined) throw cursor.unexpected(`a unit after ${quote("INTERVAL")}, such as DAY,`);
  cursor.next();
  return { kind: "interval", amount, unit, span: cursor.since(first) };
}

function number(text: string, { span }: Expression): Expression {
  if (!text.startsWith("-")) return { kind: "number", text, span };
  return { kind: "unary", operator: "-", operand: { kind: "number", text: text.slice(1), span }, span };
}

function unitOf(word: string): IntervalUnit | undefined {
  const singular = word.toLowerCase().replace(/s$/, "");
  return UNITS.has(singular) ? (singular as IntervalUnit) : undefined;
}
