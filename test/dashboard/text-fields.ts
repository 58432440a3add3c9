import { buildOpenApi } from "../../api-server/plugins/openapi.ts";
import { procedures } from "../../api-server/v2/index.ts";

/* The text fields that callers of v2 can set, read out of the schemas, so that none of a new procedure is forgotten. */

export interface TextField {
  /** `keys.createKey` */
  readonly path: string;
  /** `ratelimits[].name`; of a map of any members `meta{}`. */
  readonly field: string;
  /** What the text must be like, if not every text is possible. */
  readonly pattern: string | undefined;
  readonly lengthMax: number;
}

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: unknown;
  readonly const?: unknown;
  readonly pattern?: string;
  readonly maxLength?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
}

/** These store texts, too, but count as reading: they change nothing that pods must learn of. */
const COUNTING = ["keys.verifyKey", "ratelimit.limit", "ratelimit.multiLimit"];

/** How long a text may be where the schema says nothing. */
const LENGTH_MAX = 10_000;

/** Of every procedure that changes something, or stores what it counts. */
export function textFields(): TextField[] {
  const document = buildOpenApi(procedures) as unknown as {
    readonly paths: Readonly<
      Record<string, { readonly post: { requestBody: { content: { "application/json": { schema: Schema } } } } }>
    >;
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
  };
  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined ? schema : (document.components.schemas[schema.$ref.split("/").at(-1) ?? ""] ?? {});
  const walk = (path: string, given: Schema, field: string): TextField[] => {
    const schema = resolve(given);
    const alternatives = schema.anyOf ?? schema.oneOf;
    if (alternatives !== undefined) return alternatives.flatMap((one) => walk(path, one, field));
    if (schema.properties !== undefined) {
      return Object.entries(schema.properties).flatMap(([name, one]) =>
        walk(path, one, field === "" ? name : `${field}.${name}`),
      );
    }
    if (schema.items !== undefined) return walk(path, schema.items, `${field}[]`);
    const types = [schema.type].flat();
    if (types.includes("object")) return [{ path, field: `${field}{}`, pattern: undefined, lengthMax: LENGTH_MAX }];
    if (!types.includes("string") || schema.enum !== undefined || schema.const !== undefined) return [];
    const { pattern, maxLength: lengthMax = LENGTH_MAX } = schema;
    return [{ path, field, pattern, lengthMax }];
  };
  return procedures
    .filter(({ path, effect }) => effect === "change" || COUNTING.includes(path))
    .flatMap(({ path }) => {
      const { schema } = document.paths[`/v2/${path}`]?.post.requestBody.content["application/json"] ?? {};
      if (schema === undefined) throw new Error(`the document has no body of ${path}`);
      return [...new Map(walk(path, schema, "").map((one) => [one.field, one])).values()];
    });
}

/** A copy of a body with the text in this field; undefined where the body lacks what the field is in. */
export function withText(body: unknown, field: string, text: string): unknown {
  const copy = structuredClone(body);
  const steps = field.replace(/\{\}$/, "").split(/\.|(?=\[\])/);
  let at = copy as Record<string, unknown> | undefined;
  for (const step of steps.slice(0, -1)) at = at?.[step === "[]" ? "0" : step] as typeof at;
  if (typeof at !== "object" || at === null) return undefined;
  const last = steps.at(-1) ?? "";
  if (field.endsWith("{}")) at[last] = { [text]: text, list: [text] };
  else at[last === "[]" ? "0" : last] = text;
  return copy;
}
