import * as z from "zod";

export type JsonSchema = Record<string, unknown>;

/** JSON Schema dialect: ajv and fast-json-stringify use draft 7, OpenAPI 3.1 uses 2020-12. */
export type Dialect = "draft-7" | "draft-2020-12";

type Direction = "input" | "output";

/** Returns the JSON schema of a request: members with defaults are optional, and strict objects reject unknown members. */
export const requestSchema = (schema: z.ZodType, target: Dialect): JsonSchema => convert(schema, target, "input");

/** Returns the schema of a response. */
export const responseSchema = (schema: z.ZodType, target: Dialect): JsonSchema => convert(schema, target, "output");

/** Schemas of one OpenAPI document. */
export interface DocumentSchemas {
  request(schema: z.ZodType): JsonSchema;
  response(schema: z.ZodType): JsonSchema;
  /** Returns, by name, the named schemas that have been referenced so far. */
  components(): Record<string, JsonSchema>;
}

/**
 * Writes a named schema once, under `components`, and references it elsewhere, so that generated clients have a type with that name. Only
 * the document uses references; validation uses self-contained schemas.
 */
export function createDocumentSchemas(names: ReadonlyMap<z.ZodType, string>): DocumentSchemas {
  const registry = new NamedSchemas(names);
  const components = new Map<string, JsonSchema>();

  const convertFor = (io: Direction) => (schema: z.ZodType) => {
    const { $defs = {}, ...json } = convert(schema, "draft-2020-12", io, registry);
    for (const [name, component] of Object.entries($defs as Record<string, JsonSchema>)) {
      const known = components.get(name);
      if (known !== undefined && JSON.stringify(known) !== JSON.stringify(component)) {
        throw new Error(`${name} is not the same in requests and in answers; a shared schema has to be`);
      }
      components.set(name, component);
    }
    return json;
  };
  return {
    request: convertFor("input"),
    response: convertFor("output"),
    components: () => Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
  };
}

/** Zod registry that returns the metadata of zod's global registry, with the names of schemas added. */
class NamedSchemas extends z.core.$ZodRegistry<Record<string, unknown>> {
  readonly #names: ReadonlyMap<unknown, string>;

  constructor(names: ReadonlyMap<unknown, string>) {
    super();
    this.#names = names;
  }

  override get(schema: z.core.$ZodType): Record<string, unknown> | undefined {
    const said = z.globalRegistry.get(schema);
    const id = this.#names.get(schema);
    return id === undefined ? said : { ...said, id };
  }
}

function convert(schema: z.ZodType, target: Dialect, io: Direction, metadata?: NamedSchemas): JsonSchema {
  const named = metadata === undefined ? {} : { metadata };
  const converted = z.toJSONSchema(schema, { target, io, ...named }) as JsonSchema;
  const { $schema: _dialect, "~standard": _standard, ...json } = converted;
  return tidy(json) as JsonSchema;
}

function tidy(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(tidy);
  if (typeof node !== "object" || node === null) return node;
  const tidied: JsonSchema = {};
  for (const [name, value] of Object.entries(node)) tidied[name] = tidy(value);
  if (typeof tidied.$ref === "string") tidied.$ref = tidied.$ref.replace(/^#\/\$defs\//, "#/components/schemas/");
  return joinNullable(tidied);
}

/**
 * Converts `anyOf: [X, null]` into X with two types. Validation then reports one simple error ("expected a string or null"), and the
 * serializer need not try alternatives. X's other keywords (lengths, members) have no effect on null, because each applies only to its own
 * type.
 */
function joinNullable(schema: JsonSchema): JsonSchema {
  const { anyOf, ...rest } = schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2) return schema;
  const [first, second] = anyOf as [JsonSchema, JsonSchema];
  if (second.type !== "null" || typeof first.type !== "string") return schema;
  return { ...first, ...rest, type: [first.type, "null"] };
}
