import { createHash, randomUUID } from "node:crypto";
import type { JsonSchema } from "../../api-server/plugins/json-schema.ts";
import { BODY_BYTES_MAX } from "../../api-server/plugins/read-body.ts";

/* Bodies of maximum size, derived from the schema of a procedure and a small valid body. */

/** Maximum number of values in a body (api-v2.md section 2). */
const VALUES_MAX = 250_000;
/** The value with the most memory per byte: it reserves space for 30 other members. */
const EXPENSIVE = '{"30":0}';
/** Maximum size of `meta` in bytes and in values. */
const META_BYTES_MAX = 1_048_576;
const META_VALUES_MAX = 10_000;

interface Schema extends JsonSchema {
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly minimum?: number;
}

/** Returns the body with each list of maximum length and the largest `meta`; `undefined` if it cannot grow. */
export function largestBody(schema: JsonSchema, body: unknown): string | undefined {
  const room = { bytes: BODY_BYTES_MAX - 2 * META_BYTES_MAX };
  const before = JSON.stringify(body);
  const after = JSON.stringify(grow(schema, body, room));
  return after === before ? undefined : after;
}

function grow(schema: Schema, value: unknown, room: { bytes: number }): unknown {
  const { items, properties } = schema;
  if (items !== undefined && (value === undefined || Array.isArray(value))) return growList(schema, value ?? [], room);
  if (properties !== undefined && typeof value === "object") {
    const grown: Record<string, unknown> = { ...value };
    for (const [name, member] of Object.entries(properties)) {
      if (name in grown || member.items !== undefined || isMeta(member)) grown[name] = grow(member, grown[name], room);
    }
    return grown;
  }
  return isMeta(schema) ? largestMeta() : value;
}

/** Fills a list to its maximum, with the largest `meta` for as many items as fit. */
function growList(schema: Schema, given: readonly unknown[], room: { bytes: number }): unknown[] {
  const { items = {}, maxItems = Number.POSITIVE_INFINITY } = schema;
  const grown: unknown[] = [...given];
  while (grown.length < maxItems && room.bytes > 0) {
    const item = given.length > 0 && items.properties !== undefined ? again(given[0]) : makeItem(items, grown.length);
    room.bytes -= JSON.stringify(item).length + 1;
    grown.push(item);
  }
  for (const item of grown) {
    if (items.properties?.meta === undefined || room.bytes < META_BYTES_MAX) break;
    Object.assign(item as object, { meta: largestMeta() });
    room.bytes -= META_BYTES_MAX;
  }
  return grown;
}

/** Returns the item with another key, because two keys cannot share one. */
const again = (item: unknown): unknown =>
  JSON.parse(JSON.stringify(item), (name, value) => {
    if (typeof value !== "string") return value;
    if (name === "hash" || name === "value") return createHash("sha256").update(randomUUID()).digest("base64");
    return name === "plaintext" ? randomUUID() : value;
  });

function largestMeta(): object {
  const expensive = JSON.parse(`[${list(META_VALUES_MAX / 2 - 2, EXPENSIVE)}]`);
  return { expensive, long: "x".repeat(META_BYTES_MAX - 50_000) };
}

/** Whether a schema is `meta`: arbitrary members up to a maximum. */
const isMeta = ({ properties, maxProperties }: Schema): boolean =>
  properties === undefined && maxProperties !== undefined;

/** Returns a list item for the index with unique strings. */
function makeItem(schema: Schema, index: number): unknown {
  const { anyOf, properties, required = [], items, examples = [], minimum, type } = schema;
  if (anyOf?.[0] !== undefined) return makeItem(anyOf[0], index);
  if (schema.enum !== undefined) return schema.enum[index % schema.enum.length];
  if (properties !== undefined) {
    return Object.fromEntries(required.map((name) => [name, makeItem(properties[name] ?? {}, index)]));
  }
  if (items !== undefined) return [];
  const [example = minimum ?? true] = examples;
  return type === "string" ? `${example}${index}` : example;
}

const list = (count: number, value: string): string => Array.from({ length: count }, () => value).join(",");

/** Returns the body with the maximum number of values and with one more. */
export function bodiesOfMostValues(body: unknown): { readonly most: string; readonly tooMany: string } {
  const before = JSON.stringify(body);
  // An empty object counts as two values.
  if (Array.isArray(body))
    return { most: `[${list(VALUES_MAX / 2 - 1, "{}")}]`, tooMany: `[${list(VALUES_MAX, "0")}]` };
  // Subtracts the body, its existing values and the list.
  const left = VALUES_MAX - 2 - (before.match(/[,[{]/g)?.length ?? 0);
  const start = before === "{}" ? '{"list":[' : `${before.slice(0, -1)},"list":[`;
  return { most: `${start}${list(Math.floor(left / 2), "{}")}]}`, tooMany: `${start}${list(left + 2, "0")}]}` };
}
