import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { JsonSchema } from "../plugins/json-schema.ts";
import { resolve } from "../plugins/openapi-examples.ts";

/* Checks of a v1 or v2 OpenAPI document. `schemas` are its shared component schemas. */

type Schemas = Readonly<Record<string, JsonSchema>>;

/** Compiles a schema of the document, including references to other schemas. */
export function schemaValidator(schemas: Schemas): (schema: JsonSchema) => ValidateFunction {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: "document", components: { schemas } });
  return (schema) =>
    ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')));
}

export const gapFinder =
  (schemas: Schemas) =>
  (schema: JsonSchema, place: string): string[] =>
    findGaps(schemas, schema, place);

/**
 * Returns the fields of a schema that lack a description, and its scalars that lack an example. Referenced schemas are checked separately.
 */
function findGaps(
  schemas: Schemas,
  schema: JsonSchema,
  place: string,
  { described = true, shown = false }: { described?: boolean; shown?: boolean } = {},
): string[] {
  const gaps: string[] = [];
  const target = typeof schema.$ref === "string" ? resolve(schema.$ref, schemas) : schema;
  if (!described && (schema.description ?? target.description) === undefined) gaps.push(`${place}: no description`);
  if (target !== schema) return gaps;
  // If a list or an object has an example, its members need none.
  const parts = { shown: shown || schema.examples !== undefined };
  if (isScalar(schema) && !parts.shown) gaps.push(`${place}: no example`);
  for (const [name, member] of Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)) {
    gaps.push(...findGaps(schemas, member, `${place}.${name}`, { ...parts, described: false }));
  }
  if (typeof schema.items === "object")
    gaps.push(...findGaps(schemas, schema.items as JsonSchema, `${place}[]`, parts));
  for (const alternative of [schema.anyOf ?? schema.oneOf ?? []].flat() as JsonSchema[]) {
    gaps.push(...findGaps(schemas, alternative, place, parts));
  }
  return gaps;
}

/** Whether the schema needs an example: strings and numbers do; enums, constants and booleans describe themselves. */
function isScalar({ type, enum: values, const: value }: JsonSchema): boolean {
  if (values !== undefined || value !== undefined) return false;
  return [type].flat().some((one) => ["string", "integer", "number"].includes(String(one)));
}
