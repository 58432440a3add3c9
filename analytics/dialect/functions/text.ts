import { textSql } from "../postgres/conversions.ts";
import { invalidQuery } from "../problem.ts";
import { asText, concatenation } from "../resolve/conversion.ts";
import { call, type ResolvedExpression } from "../resolve/resolved.ts";
import { arrayOf, STRING, UINT8, UINT64 } from "../resolve/types.ts";
import { ANY, ARRAY, type ArgumentKind, checked, INTEGER, literalText, type ScalarFunction, TEXT } from "./entry.ts";

const TEXT_OR_ARRAY: ArgumentKind = {
  is: (type) => TEXT.is(type) || ARRAY.is(type),
  called: "a String or an Array",
  sql: ARRAY.sql,
};
const TEXTS: ArgumentKind = {
  is: (type) => type.name === "Array" && (type.of.name === "String" || type.of.name === "Nothing"),
  called: "an Array of Strings",
  sql: (argument, writer) => writer.as(argument, arrayOf(STRING)),
};
const KEY: ArgumentKind = {
  is: (type) => TEXT.is(type) || INTEGER.is(type),
  called: "a key or index",
  sql: TEXT.sql,
};

const toText: ScalarFunction = {
  docs: ["toString(x)", "Text."],
  resolve: (called) => asText(checked(called, [ANY])[0] as ResolvedExpression),
  postgres: ({ arguments: [operand] }, writer) => textSql(operand as ResolvedExpression, writer),
};

/** String functions. All text has collation C, so Postgres compares and changes strings by bytes, as ClickHouse does. */
export const TEXT_FUNCTIONS: Readonly<Record<string, ScalarFunction>> = {
  lower: {
    docs: ["lower(s)", "Text with ASCII letters in lower case."],
    takes: [TEXT],
    returns: STRING,
    sql: (s) => `lower(${s})`,
  },
  upper: {
    docs: ["upper(s)", "Text with ASCII letters in upper case."],
    takes: [TEXT],
    returns: STRING,
    sql: (s) => `upper(${s})`,
  },
  substring: {
    docs: ["substring(s, offset, length)", "Part of the text, in bytes; the first byte is 1."],
    takes: [TEXT, INTEGER, INTEGER],
    required: 2,
    returns: STRING,
    sql: (...args) => `analytics.substring_bytes(${args.join(", ")})`,
  },
  position: {
    docs: ["position(s, part)", "Byte at which the first occurrence of the part begins, from 1; 0 without one."],
    takes: [TEXT, TEXT],
    returns: UINT64,
    sql: (s, part) => `position(convert_to(${part}, 'UTF8') in convert_to(${s}, 'UTF8'))::bigint`,
  },
  replaceAll: {
    docs: ["replaceAll(s, part, other)", "Text in which the other text replaces each occurrence of the part."],
    takes: [TEXT, TEXT, TEXT],
    returns: STRING,
    sql: (s, part, other) => `replace(${s}, ${part}, ${other})`,
  },
  arrayStringConcat: {
    docs: ["arrayStringConcat(tags, ', ')", "Texts of an array as one text, with the separator between them."],
    resolve: (called) => {
      const args = checked(called, [TEXTS, TEXT], 1);
      if (args.length > 1) literalText(args[1], called);
      return call("arrayStringConcat", args, STRING, called.span);
    },
    takes: [TEXTS, TEXT],
    sql: (array, separator = "''") => `array_to_string(${array}, ${separator})`,
  },
  concat: {
    docs: ["concat(x, …)", "Concatenated texts."],
    resolve: (called) => {
      if (called.args.length === 0) throw invalidQuery(`${called.name} takes at least 1 argument`, called.span);
      return concatenation(called.args, called.span);
    },
    postgres: (call, writer) => `(${call.arguments.map((one) => writer.as(one, STRING)).join(" || ")})`,
  },
  length: {
    docs: ["length(x)", "Number of bytes of a text, or of elements of an array."],
    takes: [TEXT_OR_ARRAY],
    returns: UINT64,
    postgres: ({ arguments: [operand] }, writer) =>
      `${operand?.type.name === "Array" ? "cardinality" : "octet_length"}(${writer.value(operand as ResolvedExpression)})::bigint`,
  },
  trim: {
    docs: ["trim(s)", "Text without spaces at both ends."],
    takes: [TEXT],
    returns: STRING,
    sql: (s) => `btrim(${s}, ' ')`,
    clickhouse: (_, args) => `trimBoth(${args.join()})`,
  },
  startsWith: {
    docs: ["startsWith(s, prefix)", "1 if the text begins with the prefix, otherwise 0."],
    takes: [TEXT, TEXT],
    returns: UINT8,
    isCondition: true,
    sql: (s, prefix) => `starts_with(${s}, ${prefix})`,
  },
  endsWith: {
    docs: ["endsWith(s, suffix)", "1 if the text ends with the suffix, otherwise 0."],
    takes: [TEXT, TEXT],
    returns: UINT8,
    isCondition: true,
    sql: (s, suffix) => `analytics.ends_with(${s}, ${suffix})`,
  },
  JSONExtractString: {
    docs: ["JSONExtractString(s, 'name')", "String member of a JSON text. On Postgres '' for a string with U+0000."],
    resolve: (called) => {
      if (called.args.length < 1) throw invalidQuery(`${called.name} takes at least 1 argument`, called.span);
      const args = checked(called, [TEXT, ...called.args.slice(1).map(() => KEY)]);
      return call("JSONExtractString", args, STRING, called.span);
    },
    postgres: (call, writer) => {
      const [json, ...path] = call.arguments as readonly [ResolvedExpression, ...ResolvedExpression[]];
      const wrong = path.find(({ type }) => type.name !== "String");
      if (wrong) throw invalidQuery("JSONExtractString is supported with keys, not with indexes", wrong.span);
      const keys = `array[${path.map((key) => writer.value(key)).join(", ")}]::text[]`;
      return `analytics.json_string(${writer.as(json, STRING)}, ${keys})`;
    },
  },
  toString: toText,
  /** `domain/analytics/key-spaces.ts` replaces calls of this function before the query is resolved. */
  keySpaceOf: {
    docs: ["keySpaceOf('api_…')", "Key space of an API, for key_space_id; '' for an API that you cannot read."],
  },
};
