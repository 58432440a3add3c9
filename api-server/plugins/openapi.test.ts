import { describe, expect, test } from "vitest";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import { gapFinder, schemaValidator } from "../test/openapi-checks.ts";
import { procedures } from "../v2/index.ts";
import type { JsonSchema } from "./json-schema.ts";
import { buildOpenApi } from "./openapi.ts";

interface Media {
  readonly schema: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Record<string, { value?: unknown; $ref?: string }>;
}

interface HttpResponse {
  readonly headers?: Record<string, unknown>;
  readonly content: { "application/json": Media };
}

interface Document {
  readonly paths: Record<
    string,
    {
      post?: {
        requestBody: { content: { "application/json": Media } };
        responses: Record<string, HttpResponse | { $ref: string }>;
        parameters?: { $ref: string }[];
      };
    }
  >;
  readonly components: {
    schemas: Record<string, JsonSchema>;
    responses: Record<string, HttpResponse>;
    headers: Record<string, unknown>;
    examples: Record<string, { value: unknown }>;
  };
}

// As a reader gets it.
const document: Document = JSON.parse(JSON.stringify(buildOpenApi(procedures)));
const { schemas } = document.components;
const findGaps = gapFinder(schemas);

const operations = procedures.map(({ path, errors }) => {
  const operation = document.paths[`/v2/${path}`]?.post;
  if (operation === undefined) throw new Error(`${path} is not in the document`);
  return { path, errors, operation, request: operation.requestBody.content["application/json"] };
});

const responseOf = ({ responses }: (typeof operations)[number]["operation"], status: number): HttpResponse => {
  const response = responses[status];
  if (response === undefined) throw new Error(`there is no answer ${status}`);
  if (!("$ref" in response)) return response;
  const shared = document.components.responses[response.$ref.slice("#/components/responses/".length)];
  if (shared === undefined) throw new Error(`${response.$ref} is not there`);
  return shared;
};

describe("every field has a description, and every scalar an example", () => {
  test.each(operations)("v2 operation $path has descriptions and examples", ({ request, operation }) => {
    const response = responseOf(operation, 200).content["application/json"].schema;
    const { data, ...envelope } = response.properties as Record<string, JsonSchema>;
    expect([
      ...findGaps(request.schema, "body"),
      ...findGaps({ properties: envelope }, "answer"),
      ...findGaps(data ?? {}, "data"),
    ]).toEqual([]);
  });

  test.each(Object.keys(schemas))("shared v2 schema %s has descriptions and examples", (name) => {
    expect(findGaps(schemas[name] ?? {}, name)).toEqual([]);
  });
});

describe("examples", () => {
  const validator = schemaValidator(schemas);

  test.each(operations)("v2 examples of $path match their schemas", ({ request, operation }) => {
    const isRequest = validator(request.schema);
    const examples = Object.values(request.examples ?? {});
    expect(examples).not.toEqual([]);
    for (const { value } of examples) expect([value, isRequest(value), isRequest.errors]).toEqual([value, true, null]);
    const response = responseOf(operation, 200).content["application/json"];
    const isResponse = validator(response.schema);
    expect([response.example, isResponse(response.example), isResponse.errors]).toEqual([response.example, true, null]);
  });

  test("v2 error examples match the server responses", () => {
    const isError = validator({ $ref: "#/components/schemas/ErrorResponse" });
    for (const [kind, { value }] of Object.entries(document.components.examples)) {
      expect([kind, isError(value), isError.errors]).toEqual([kind, true, null]);
    }
  });
});

describe("responses", () => {
  test.each(operations)("v2 operation $path documents its errors by status", ({ errors, operation }) => {
    for (const kind of [...errors, "invalid_input", "workspace_rate_limited"] as ErrorKind[]) {
      const media = responseOf(operation, ERROR_KINDS[kind].status).content["application/json"];
      expect(media.examples?.[kind]).toEqual({ $ref: `#/components/examples/${kind}` });
    }
  });

  test.each(operations)("v2 operation $path documents the quota headers", ({ operation }) => {
    for (const status of [200, 429]) {
      const names = Object.keys(responseOf(operation, status).headers ?? {});
      expect(names).toEqual(expect.arrayContaining(["RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"]));
    }
    expect(Object.keys(responseOf(operation, 429).headers ?? {})).toContain("Retry-After");
  });
});

test("only v2 operations that change objects have the manager headers", () => {
  const takes = (path: string) => document.paths[`/v2/${path}`]?.post?.parameters !== undefined;
  expect(takes("apis.createApi")).toBe(true);
  expect(takes("keys.updateKey")).toBe(true);
  expect(takes("ratelimit.limit")).toBe(false);
  expect(takes("keys.verifyKey")).toBe(false);
  expect(takes("apis.getApi")).toBe(false);
});

test("shared v2 schemas are defined once under names usable by clients", () => {
  expect(Object.keys(schemas)).toEqual(
    expect.arrayContaining(["ErrorResponse", "Identity", "Key", "Pagination", "Permission", "Ratelimit", "Role"]),
  );
  expect(JSON.stringify(document)).not.toContain("$defs");
});
