import * as z from "zod";
import { DURATION_PATTERN } from "../../core/manifests/duration.ts";

/*
 * Converts JSON Schema to the structural subset that the Kubernetes API server accepts: each value has one type; there are no $ref, const
 * or conditionals; an object has either listed properties or one schema for all its properties. The API server prunes unknown fields, so
 * `additionalProperties: false` has no counterpart.
 */

export const DURATION_FORM = "A duration such as 500ms, 60s or 1h30m, or an integer of milliseconds.";

export type Structural = Record<string, unknown>;

type JsonSchema = Readonly<Record<string, unknown>>;

/** Keywords that are copied unchanged, in output order. */
const KEPT = [
  "type",
  "description",
  "default",
  "enum",
  "pattern",
  "minLength",
  "maxLength",
  "minimum",
  "maximum",
  "minItems",
  "maxItems",
  "minProperties",
  "maxProperties",
  "required",
] as const;

/** Keywords that the code below handles, or that the Kubernetes API server does not use. */
const TRANSLATED = new Set([
  "$schema",
  "~standard",
  "additionalProperties",
  "anyOf",
  "const",
  "examples",
  "format",
  "items",
  "properties",
  "propertyNames",
]);

export function structuralSchema(schema: z.ZodType, io: "input" | "output"): Structural {
  return convert(z.toJSONSchema(schema, { target: "draft-7", io, reused: "inline" }) as JsonSchema, "");
}

function convert(schema: JsonSchema, path: string): Structural {
  const structural: Structural = {};
  for (const keyword of KEPT) if (schema[keyword] !== undefined) structural[keyword] = schema[keyword];
  // Describes the accepted form, because `kubectl explain` shows neither the pattern nor the alternative types.
  if (schema.pattern === DURATION_PATTERN) structural.description = `${schema.description} ${DURATION_FORM}`;
  // Rewrites `\u` escapes of JavaScript, which the Go regular expressions of the Kubernetes API server do not support.
  if (typeof schema.pattern === "string") structural.pattern = schema.pattern.replace(/\\u([0-9a-f]{4})/gi, "\\x{$1}");
  if (schema.const !== undefined) structural.enum = [schema.const];
  convertFormat(schema, structural);
  convertMembers(schema, structural, path);
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword.startsWith("x-kubernetes-")) structural[keyword] = value;
    else if (!(KEPT as readonly string[]).includes(keyword) && !TRANSLATED.has(keyword)) {
      throw new Error(`${path || "the schema"} uses ${keyword}, which has no translation for a CRD`);
    }
  }
  if (structural["x-kubernetes-int-or-string"] === true) delete structural.type;
  // Handles a value that has a list of allowed values but no type.
  else if (structural["x-kubernetes-preserve-unknown-fields"] === true && Array.isArray(schema.enum))
    delete structural.type;
  else if (schema.anyOf !== undefined || Array.isArray(schema.type))
    throw new Error(`${path} has alternatives that are neither int-or-string nor listed`);
  return structural;
}

function convertFormat({ type, format }: JsonSchema, structural: Structural): void {
  if (type === "integer") structural.format = "int64";
  if (format !== "date-time") return;
  structural.format = "date-time";
  // Drops the pattern, because the format expresses the same rule in a readable form.
  delete structural.pattern;
}

function convertMembers(schema: JsonSchema, structural: Structural, path: string): void {
  const { items, properties, additionalProperties } = schema;
  if (typeof items === "object" && items !== null) structural.items = convert(items as JsonSchema, `${path}[]`);
  if (typeof properties === "object" && properties !== null) {
    structural.properties = Object.fromEntries(
      Object.entries(properties).map(([name, member]) => [name, convert(member as JsonSchema, `${path}.${name}`)]),
    );
  } else if (typeof additionalProperties === "object" && additionalProperties !== null) {
    structural.additionalProperties = convert(additionalProperties as JsonSchema, `${path}.*`);
  }
}
