import type * as z from "zod";
import type { ApiRequest } from "./api-request.ts";
import { type JsonSchema, requestSchema } from "./json-schema.ts";

/*
 * Parses the query string of a GET (api-v1.md section 2) by its schema, because a query string contains only strings. A value that does not
 * match stays a string, so that validation rejects it with the expected type.
 */

/** Returns the members of a query that the schema defines. Path parameters count as members too. */
export type QueryReader = (request: Pick<ApiRequest, "query" | "params">) => Record<string, unknown>;

type ReadText = (text: string) => unknown;

/**
 * Compiles a reader for a schema, which must be an object of strings, numbers, booleans and lists of these. Throws for any other schema.
 * This runs when the server starts, so a procedure with such a schema prevents the start.
 */
export function compileQuery(schema: z.ZodType, url: string): QueryReader {
  const { properties = {} } = requestSchema(schema, "draft-7") as { properties?: Record<string, JsonSchema> };
  const readers = Object.entries(properties).map(
    ([name, property]) => [name, readerOf(property, `${url}?${name}`)] as const,
  );
  return ({ query, params }) => {
    const texts = { ...(query as object), ...(params as object) } as Record<string, string | string[] | undefined>;
    const read: Record<string, unknown> = {};
    for (const [name, readValue] of readers) {
      const value = texts[name];
      if (value !== undefined) read[name] = readValue(value);
    }
    return read;
  };
}

function readerOf({ type, items }: JsonSchema, place: string): (value: string | string[]) => unknown {
  if (type === "array") {
    const readItem = textReader((items as JsonSchema).type, place);
    // A list member that occurs only once arrives as a string, and becomes a list with one item.
    return (value) => (typeof value === "string" ? [readItem(value)] : value.map(readItem));
  }
  const readText = textReader(type, place);
  return (value) => (typeof value === "string" ? readText(value) : value);
}

function textReader(type: unknown, place: string): ReadText {
  const types = [type].flat();
  const [of, ...others] = types.filter((one) => one !== "null");
  const read = READERS[String(of)];
  if (read === undefined || others.length > 0) throw new Error(`a query cannot hold what ${place} is`);
  if (!types.includes("null")) return read;
  return (text) => (text === "" || text === "null" ? null : read(text));
}

const READERS: Readonly<Record<string, ReadText>> = {
  string: (text) => text,
  integer: readNumber,
  number: readNumber,
  boolean: readBoolean,
};

/** Format of a number, as in JSON. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

function readNumber(text: string): unknown {
  const value = NUMBER.test(text) ? Number(text) : Number.NaN;
  return Number.isFinite(value) ? value : text;
}

function readBoolean(text: string): unknown {
  if (text === "true" || text === "1") return true;
  return text === "false" || text === "0" || text === "" ? false : text;
}
