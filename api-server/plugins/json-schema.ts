import * as z from "zod";

export type JsonSchema = Record<string, unknown>;

/** Draft 7 is what ajv and fast-json-stringify speak, 2020-12 what OpenAPI 3.1 speaks. */
export type Dialect = "draft-7" | "draft-2020-12";

/** What clients may send: defaults are optional, unknown members are refused where the schema is strict. */
export const requestSchema = (schema: z.ZodType, target: Dialect): JsonSchema => convert(schema, target, "input");

/** What the server sends. */
export const responseSchema = (schema: z.ZodType, target: Dialect): JsonSchema => convert(schema, target, "output");

function convert(schema: z.ZodType, target: Dialect, io: "input" | "output"): JsonSchema {
  const { $schema: _dialect, "~standard": _standard, ...json } = z.toJSONSchema(schema, { target, io }) as JsonSchema;
  return joinNullable(json) as JsonSchema;
}

/**
 * `anyOf: [X, null]` becomes X with two types. Validation then complains once and in plain words ("expected a string or
 * null"), and the serializer need not try alternatives. X's other keywords (lengths, members) mind only their own type.
 */
function joinNullable(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(joinNullable);
  if (typeof node !== "object" || node === null) return node;
  const joined: JsonSchema = {};
  for (const [name, value] of Object.entries(node)) joined[name] = joinNullable(value);
  const { anyOf, ...rest } = joined;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return joined;
  const [first, second] = anyOf as [JsonSchema, JsonSchema];
  if (second.type !== "null" || typeof first.type !== "string") return joined;
  return { ...first, ...rest, type: [first.type, "null"] };
}
