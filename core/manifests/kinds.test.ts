import { describe, expect, test } from "vitest";
import * as z from "zod";
import { KINDS } from "./index.ts";

type Schema = { [key: string]: unknown; properties?: Record<string, Schema>; items?: Schema };

/** Yields every schema in a JSON schema with its path. */
function* parts(schema: Schema, place: string): Generator<[string, Schema]> {
  yield [place, schema];
  for (const [name, property] of Object.entries(schema.properties ?? {})) yield* parts(property, `${place}.${name}`);
  if (schema.items !== undefined) yield* parts(schema.items, `${place}[]`);
}

describe.each(KINDS)("$kind", ({ specSchema, statusSchema, plural, singular }) => {
  const spec = z.toJSONSchema(specSchema, { io: "input" }) as Schema;
  const status = z.toJSONSchema(statusSchema) as Schema;
  const all = [...parts(spec, "spec"), ...parts(status, "status")];

  test("every manifest field has a description for the CRD and the reference", () => {
    const fields = all.filter(([place]) => place.includes(".") && !place.endsWith("[]"));
    const undescribed = fields.filter(([, schema]) => typeof schema.description !== "string").map(([place]) => place);
    expect(undescribed).toEqual([]);
  });

  test("every manifest text and list has a maximum length, which bounds the cost of CEL rules", () => {
    const unbounded = all.filter(([, { type, format, maxLength, maxItems, ...schema }]) => {
      if (type === "string") return maxLength === undefined && schema.enum === undefined && format !== "date-time";
      return type === "array" && maxItems === undefined;
    });
    expect(unbounded.map(([place]) => place)).toEqual([]);
  });

  test("manifests use only unions that a Kubernetes schema can express", () => {
    const unions = all.filter(([, schema]) => "anyOf" in schema || "oneOf" in schema || "allOf" in schema);
    expect(
      unions
        .filter(([, schema]) => schema["x-kubernetes-int-or-string"] !== true && !Array.isArray(schema.enum))
        .map(([place]) => place),
    ).toEqual([]);
  });

  test("manifest kind has names that kubectl accepts", () => {
    expect(plural).toMatch(/^[a-z]+$/);
    expect(singular).toMatch(/^[a-z]+$/);
  });
});

test("printer column names are single words as in kubectl", () => {
  const names = KINDS.flatMap(({ printerColumns }) => printerColumns.map(({ name }) => name));
  expect(names.filter((name) => !/^[A-Z][A-Za-z-]*$/.test(name))).toEqual([]);
});

test("plural and short names of manifest kinds are unique", () => {
  const names = KINDS.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]);
  expect(new Set(names).size).toBe(names.length);
});
