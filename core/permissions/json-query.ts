import type { Query } from "./query.ts";

/*
 * The permission query of v1, in JSON. It is parsed to the same tree as the text of a v2 query:
 *
 *   query = text | { "and": [query, …] } | { "or": [query, …] }        at least one element each
 *
 * If an object has both members, only `and` counts; other members are ignored. The tree is as deep as the JSON, whose depth the body parser
 * limits.
 */

/** Error with the invalid location (`and[1].or`) and the expected value. */
export class JsonQueryError extends Error {
  override name = "JsonQueryError";
  readonly place: string;

  constructor(place: string) {
    super("expected a permission, or an object with `and` or `or`: a list with at least one element");
    this.place = place;
  }
}

/** Parses a JSON query. Returns `undefined` for an absent, null or empty query, which requests no permission. Throws `JsonQueryError`. */
export const readJsonQuery = (value: unknown): Query | undefined =>
  value === undefined || value === null || value === "" ? undefined : read(value, "");

function read(value: unknown, place: string): Query {
  if (typeof value === "string") return { op: "permission", slug: value };
  const op = operatorOf(value);
  if (op === undefined) throw new JsonQueryError(place);
  const at = place === "" ? op : `${place}.${op}`;
  const operands = (value as Record<string, unknown>)[op];
  if (!Array.isArray(operands) || operands.length === 0) throw new JsonQueryError(at);
  return { op, operands: operands.map((operand, index) => read(operand, `${at}[${index}]`)) };
}

function operatorOf(value: unknown): "and" | "or" | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (Object.hasOwn(value, "and")) return "and";
  return Object.hasOwn(value, "or") ? "or" : undefined;
}
