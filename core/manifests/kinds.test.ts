import { describe, expect, test } from "vitest";
import * as z from "zod";
import { KINDS } from "./index.ts";

type Schema = { [key: string]: unknown; properties?: Record<string, Schema>; items?: Schema };

/** Every schema in a JSON schema, with its place. */
function* parts(schema: Schema, place: string): Generator<[string, Schema]> {
  yield [place, schema];
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* parts(property, `${place}.${name}`);
  if (schema.items !== undefined) yield* parts(schema.items, `${place}[]`);
}

describe.each(KINDS)("$kind", ({ specSchema, statusSchema, plural, singular }) => {
  const spec = z.toJSONSchema(specSchema, { io: "input" }) as Schema;
  const status = z.toJSONSchema(statusSchema) as Schema;
  const all = [...parts(spec, "spec"), ...parts(status, "status")];

  test("has a description for every field, for the CRD and the reference", () => {
    const fields = all.filter(([place]) => place.includes(".") && !place.endsWith("[]"));
    const undescribed = fields.filter(([, schema]) => typeof schema.description !== "string").map(([place]) => place);
    expect(undescribed).toEqual([]);
  });

  test("bounds every text and every list, so that the cost of its rules is bounded", () => {
    const unbounded = all.filter(([, { type, format, maxLength, maxItems, ...schema }]) => {
      if (type === "string") return maxLength === undefined && schema.enum === undefined && format !== "date-time";
      return type === "array" && maxItems === undefined;
    });
    expect(unbounded.map(([place]) => place)).toEqual([]);
  });

  test("has only the unions that Kubernetes can express: an integer or a text, or a list of all values", () => {
    const unions = all.filter(([, schema]) => "anyOf" in schema || "oneOf" in schema || "allOf" in schema);
    expect(
      unions
        .filter(([, schema]) => schema["x-kubernetes-int-or-string"] !== true && !Array.isArray(schema.enum))
        .map(([place]) => place),
    ).toEqual([]);
  });

  test("has names that kubectl accepts", () => {
    expect(plural).toMatch(/^[a-z]+$/);
    expect(singular).toMatch(/^[a-z]+$/);
  });
});

test("columns are one word each, as kubectl's own are", () => {
  const names = KINDS.flatMap(({ printerColumns }) => printerColumns.map(({ name }) => name));
  expect(names.filter((name) => !/^[A-Z][A-Za-z-]*$/.test(name))).toEqual([]);
});

test("names and short names are of one kind each", () => {
  const names = KINDS.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]);
  expect(new Set(names).size).toBe(names.length);
});
