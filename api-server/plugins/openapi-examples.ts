import type { JsonSchema } from "./json-schema.ts";

/* Builds examples of complete bodies from the examples of their fields. */

/** Which fields an example includes: only the required ones, or all. */
type Extent = "required" | "all";

/**
 * Returns a value that matches the schema; `undefined` if a part of the schema has no example. `components` resolves the schema's
 * references.
 */
export function exampleOf(
  schema: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
  extent: Extent = "all",
): unknown {
  const { $ref, examples, anyOf, oneOf, items } = schema;
  const [given] = Array.isArray(examples) ? examples : [];
  if (given !== undefined) return given;
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (typeof $ref === "string") return exampleOf(resolve($ref, components), components, extent);
  const alternatives = (anyOf ?? oneOf) as JsonSchema[] | undefined;
  if (alternatives?.[0] !== undefined) return exampleOf(alternatives[0], components, extent);
  switch (Array.isArray(schema.type) ? schema.type[0] : schema.type) {
    case "boolean":
      return true;
    case "array": {
      const item = exampleOf((items ?? {}) as JsonSchema, components, extent);
      return item === undefined ? undefined : [item];
    }
    case "object":
      return exampleOfObject(schema, components, extent);
    default:
      return undefined;
  }
}

/** Returns the examples of a request: one with every field and, unless all fields are required, one with only the required fields. */
export function requestExamples(schema: JsonSchema, components: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const [least, full] = [exampleOf(schema, components, "required"), exampleOf(schema, components, "all")];
  if (JSON.stringify(least) === JSON.stringify(full)) return { full: { summary: "Complete", value: full } };
  return {
    full: { summary: "With every field", value: full },
    least: { summary: "Required fields only", value: least },
  };
}

function exampleOfObject(
  { properties = {}, required = [] }: JsonSchema,
  components: Readonly<Record<string, JsonSchema>>,
  extent: Extent,
): Record<string, unknown> {
  const example: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(properties as Record<string, JsonSchema>)) {
    if (extent === "required" && !(required as string[]).includes(name)) continue;
    const value = exampleOf(member, components, extent);
    if (value !== undefined) example[name] = value;
  }
  return example;
}

/** Returns the target of a reference in the document. Throws if it does not exist. */
export function resolve($ref: string, components: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const schema = components[$ref.slice("#/components/schemas/".length)];
  if (schema === undefined) throw new Error(`the OpenAPI document refers to ${$ref}, which is not there`);
  return schema;
}
