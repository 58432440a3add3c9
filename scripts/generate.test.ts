import { expect, test } from "vitest";
import * as z from "zod";
import { toTypes } from "./generate/api-types.ts";
import { structuralSchema } from "./generate/structural-schema.ts";
import { findStale } from "./generate.ts";

test("every generated file equals the output of `npm run generate`", async () => {
  expect(await findStale()).toEqual([]);
});

test("structural schema has one type per value and only keywords that Kubernetes accepts", () => {
  const schema = z.strictObject({
    port: z.union([z.string(), z.int()]).meta({ "x-kubernetes-int-or-string": true }),
    kind: z.literal("a").optional(),
    at: z.iso.datetime(),
    labels: z.record(z.string(), z.string().max(3)),
    list: z.array(z.strictObject({ n: z.int().min(1) })).default([]),
  });
  expect(structuralSchema(schema, "input")).toEqual({
    type: "object",
    required: ["port", "at", "labels"],
    properties: {
      port: { "x-kubernetes-int-or-string": true },
      kind: { type: "string", enum: ["a"] },
      at: { type: "string", format: "date-time" },
      labels: { type: "object", additionalProperties: { type: "string", maxLength: 3 } },
      list: {
        type: "array",
        default: [],
        items: {
          type: "object",
          required: ["n"],
          properties: { n: { type: "integer", format: "int64", minimum: 1, maximum: Number.MAX_SAFE_INTEGER } },
        },
      },
    },
  });
});

test("schema without a structural form is rejected with its location", () => {
  const schema = z.strictObject({ deep: z.strictObject({ either: z.union([z.string(), z.boolean()]) }) });
  expect(() => structuralSchema(schema, "input")).toThrow(".deep.either has alternatives");
});

test("generated API types have the form that openapi-fetch expects", () => {
  const json = (schema: object) => ({ content: { "application/json": { schema } } });
  const body = {
    type: "object",
    properties: {
      a: { type: "string" },
      b: { type: ["integer", "null"] },
      "c-d": { enum: ["x", "y"] },
      e: { type: "array", items: {} },
    },
    required: ["a"],
  };
  const types = toTypes({
    paths: {
      "/v2/x.y": {
        post: {
          summary: "Do y",
          requestBody: json(body),
          responses: { "200": json({ type: "boolean" }), "400": json({ $ref: "#/components/schemas/E" }) },
        },
      },
      "/v2/live": { get: { summary: "Live", responses: {} } },
    },
    components: { schemas: { E: { type: "object", additionalProperties: false } } },
  });
  for (const line of [
    '"/v2/x.y": {',
    "a: string;",
    "b?: number | null | undefined;",
    '"c-d"?: "x" | "y" | undefined;',
    "e?: Array<unknown> | undefined;",
    'content: { "application/json": boolean }',
    'content: { "application/json": components["schemas"]["E"] }',
    "E: Record<string, never>;",
  ]) {
    expect(types).toContain(line);
  }
  expect(types).not.toContain("/v2/live");
});
