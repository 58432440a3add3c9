import type { FunctionCall, ResolvedExpression } from "../resolve/resolved.ts";
import { INT64, isInteger, STRING, type Type } from "../resolve/types.ts";
import type { Span } from "../tree.ts";
import { unsupported } from "./unsupported.ts";
import type { Writer } from "./writer.ts";

type Write = (call: FunctionCall, writer: Writer) => string;

/** Strings are compared and changed by bytes: all text has collation C, which changes the case of ASCII letters only. */
export const applied =
  (name: string): Write =>
  (call, writer) =>
    `${name}(${call.arguments.map((argument) => writer.as(argument, STRING)).join(", ")})`;

export const length: Write = (call, writer) => {
  const [operand] = call.arguments as readonly [ResolvedExpression];
  const value = writer.value(operand);
  return operand.type.name === "Array" ? `cardinality(${value})::bigint` : `octet_length(${value})::bigint`;
};

/** Removes spaces only, at both ends. */
export const trim: Write = (call, writer) =>
  `btrim(${writer.as(call.arguments[0] as ResolvedExpression, STRING)}, ' ')`;

export const concat: Write = (call, writer) =>
  `(${call.arguments.map((argument) => writer.as(argument, STRING)).join(" || ")})`;

export const substring: Write = (call, writer) => {
  const [operand, offset, length] = call.arguments as readonly [
    ResolvedExpression,
    ResolvedExpression,
    ResolvedExpression?,
  ];
  const places = [offset, ...(length ? [length] : [])].map((place) => writer.as(place, INT64));
  return `analytics.substring_bytes(${[writer.as(operand, STRING), ...places].join(", ")})`;
};

export const startsWith: Write = (call, writer) => `starts_with(${textArguments(call, writer).join(", ")})`;

export const endsWith: Write = (call, writer) => `analytics.ends_with(${textArguments(call, writer).join(", ")})`;

const textArguments = (call: FunctionCall, writer: Writer): readonly string[] =>
  call.arguments.map((argument) => writer.as(argument, STRING));

export const extractString: Write = (call, writer) => {
  const [json, ...path] = call.arguments as readonly [ResolvedExpression, ...ResolvedExpression[]];
  const wrong = path.find(({ type }) => type.name !== "String");
  if (wrong) throw unsupported("JSONExtractString is supported with keys, not with places", wrong.span);
  const keys = `array[${path.map((key) => writer.value(key)).join(", ")}]::text[]`;
  return `analytics.json_string(${writer.as(json, STRING)}, ${keys})`;
};

/** Emits LIKE with ClickHouse's escapes: a backslash escapes `%`, `_` and itself, and is literal before other characters. */
export const like =
  (operator: "like" | "not like" | "ilike" | "not ilike"): Write =>
  (call, writer) => {
    const [operand, pattern] = call.arguments as readonly [ResolvedExpression, ResolvedExpression];
    const text = pattern.kind === "literal" && typeof pattern.value === "string" ? pattern.value : undefined;
    if (text === undefined) throw unsupported("the pattern of LIKE is a string literal", pattern.span);
    // Collation C ignores case for ASCII letters only.
    if (operator.endsWith("ilike") && /\P{ASCII}/u.test(text)) {
      throw unsupported("ILIKE is supported with ASCII letters alone", pattern.span);
    }
    return `(${writer.as(operand, STRING)} ${operator} ${writer.parameters.text(patternText(text, pattern.span))})`;
  };

function patternText(pattern: string, span: Span): string {
  return pattern.replace(/\\([\s\S]?)/g, (_, escaped: string) => {
    if (escaped === "") throw unsupported("a pattern cannot end in a backslash", span);
    return /[%_\\]/.test(escaped) ? `\\${escaped}` : `\\\\${escaped}`;
  });
}

/** Emits the equivalent of `toString`. */
export function textOf(expression: ResolvedExpression, writer: Writer): string {
  const value = writer.value(expression);
  const { type } = expression;
  if (type.name === "String" || type.name === "Nothing") return value;
  if (type.name === "Float64") return `analytics.float_text(${value})`;
  if (isInteger(type) || type.name === "Bool") return `(${value}::text collate "C")`;
  const template = templateOf(type);
  if (!template) throw unsupported("toString of an Array is not supported", expression.span);
  return `(to_char(${value}${type.name === "Date" ? "::timestamp" : ""}, '${template}') collate "C")`;
}

function templateOf(type: Type): string | undefined {
  const seconds = "YYYY-MM-DD HH24:MI:SS";
  if (type.name === "Date") return "YYYY-MM-DD";
  if (type.name === "DateTime") return seconds;
  if (type.name !== "DateTime64") return undefined;
  return type.scale === 0 ? seconds : type.scale <= 6 ? `${seconds}.FF${type.scale}` : undefined;
}
