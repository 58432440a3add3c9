import { describe, expect, test } from "vitest";
import { gapFinder, schemaValidator } from "../../test/openapi-checks.ts";
import { v1Procedures } from "../../v1/index.ts";
import type { JsonSchema } from "../json-schema.ts";
import { V1_CODES, v1FailureOf } from "./errors.ts";
import { buildV1OpenApi, operationIdOf } from "./openapi.ts";

interface Media {
  readonly schema: JsonSchema;
  readonly example?: unknown;
  readonly examples?: Record<string, { value?: unknown; $ref?: string }>;
}

interface HttpResponse {
  readonly headers: Record<string, unknown>;
  readonly content: { "application/json": Media };
}

interface Operation {
  readonly operationId: string;
  readonly deprecated: boolean;
  readonly requestBody?: { content: { "application/json": Media } };
  readonly parameters?: readonly {
    name: string;
    in: string;
    required: boolean;
    schema: JsonSchema;
    description: string;
  }[];
  readonly responses: Record<string, HttpResponse>;
}

// As a reader gets it.
const document: {
  readonly paths: Record<string, { get?: Operation; post?: Operation }>;
  readonly components: { schemas: Record<string, JsonSchema>; examples: Record<string, { value: unknown }> };
} = JSON.parse(JSON.stringify(buildV1OpenApi(v1Procedures)));

const findGaps = gapFinder(document.components.schemas);
const validator = schemaValidator(document.components.schemas);

const operations = v1Procedures.map((procedure) => {
  const url = `/v1/${procedure.path.replaceAll(/:(\w+)/g, "{$1}")}`;
  const operation = document.paths[url]?.[procedure.method === "GET" ? "get" : "post"];
  if (operation === undefined) throw new Error(`${procedure.path} is not in the document`);
  return { path: procedure.path, procedure, operation };
});

describe.each(operations)("$path", ({ procedure, operation }) => {
  const { path, method, errors, status = 200 } = procedure;
  const request = operation.requestBody?.content["application/json"];
  const success = operation.responses[status]?.content["application/json"];

  test("v1 operation is deprecated and has an operationId", () => {
    expect(operation.deprecated).toBe(true);
    expect(operation.operationId).toBe(operationIdOf(path));
    expect(operation.operationId).toMatch(/^[a-zA-Z.]+$/);
  });

  test("v1 operation has a body or query and describes each field", () => {
    expect(request !== undefined).toBe(method === "POST");
    expect(operation.parameters !== undefined).toBe(method === "GET");
    const gaps = (operation.parameters ?? []).flatMap(({ name, description, schema }) =>
      findGaps({ properties: { [name]: { ...schema, description } } }, "query"),
    );
    expect([...gaps, ...findGaps(request?.schema ?? {}, "body"), ...findGaps(success?.schema ?? {}, "answer")]).toEqual(
      [],
    );
  });

  test("v1 operation accepts unknown fields", () => {
    expect(JSON.stringify(request?.schema ?? {})).not.toContain('"additionalProperties":false');
  });

  test("v1 operation has valid examples", () => {
    for (const { value } of Object.values(request?.examples ?? {})) {
      const isRequest = validator(request?.schema ?? {});
      expect([value, isRequest(value), isRequest.errors]).toEqual([value, true, null]);
    }
    const isResponse = validator(success?.schema ?? {});
    expect([success?.example, isResponse(success?.example), isResponse.errors]).toEqual([success?.example, true, null]);
  });

  test("v1 operation documents the v1 headers, and its errors by status", () => {
    for (const kind of errors) {
      const { status, code } = v1FailureOf(kind);
      const media = operation.responses[status]?.content["application/json"];
      expect(media?.examples?.[code], kind).toEqual({ $ref: `#/components/examples/${code}` });
    }
    for (const [status, { headers }] of Object.entries(operation.responses)) {
      expect(Object.keys(headers), status).toEqual(
        expect.arrayContaining(["Deprecation", "Link", "Sunset", "X-Request-Id"]),
      );
    }
  });
});

test("v1 operations have different ids", () => {
  const ids = operations.map(({ operation }) => operation.operationId);
  expect(ids).toEqual([...new Set(ids)]);
});

test("v1 error examples match the server responses", () => {
  const isError = validator({ $ref: "#/components/schemas/ErrorResponse" });
  expect(Object.keys(V1_CODES)).toEqual(expect.arrayContaining(Object.keys(document.components.examples)));
  for (const [code, { value }] of Object.entries(document.components.examples)) {
    expect([code, isError(value), isError.errors]).toEqual([code, true, null]);
  }
});
