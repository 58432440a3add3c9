import type { FastifyInstance } from "fastify";
import * as z from "zod";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import type { AnyProcedure } from "../procedure.ts";
import { describeNeeded } from "../v2/needed-permissions.ts";
import { type JsonSchema, requestSchema, responseSchema } from "./json-schema.ts";
import { successBody } from "./pipeline.ts";

/*
 * The OpenAPI 3.1 document, made from the schemas that the requests are checked with.
 */

const DIALECT = "draft-2020-12";
const API_VERSION = "2.0.0";

/** What every procedure can answer with (api/v2 section 4.2). */
const COMMON_ERRORS: readonly ErrorKind[] = [
  "invalid_input",
  "request_body_unreadable",
  "unauthorized",
  "forbidden",
  "request_timeout",
  "request_body_too_large",
  "workspace_rate_limited",
  "unexpected_error",
  "service_unavailable",
];

const ErrorResponse = z
  .strictObject({
    meta: z.strictObject({ requestId: z.string() }),
    error: z.strictObject({
      title: z.string().describe("Short and the same for every error of the kind."),
      detail: z.string().describe("What happened, for a person."),
      status: z.int().describe("Equals the HTTP status."),
      type: z.string().describe("`{docs_url}/errors/<kind>`: its last segment is the kind."),
      errors: z
        .array(
          z.strictObject({
            location: z.string().describe("Where the offending value is, such as `body.ratelimits[2].limit`."),
            message: z.string().describe("What was expected, and what was there."),
            fix: z.string().optional().describe("A suggestion."),
          }),
        )
        .optional()
        .describe("With status 400, 408 and 413 alone."),
    }),
  })
  .describe("Every error has this form.");

export function buildOpenApi(procedures: readonly AnyProcedure[]): JsonSchema {
  const paths: Record<string, JsonSchema> = {};
  for (const procedure of [...procedures].sort(byPath)) {
    paths[`/v2/${procedure.path}`] = { post: operation(procedure) };
  }
  paths["/v2/liveness"] = { get: LIVENESS };
  return {
    openapi: "3.1.0",
    info: {
      title: "Postern",
      version: API_VERSION,
      description:
        "API keys, roles, rate limits and usage analytics. Every procedure is a POST with a JSON body and a root key in the `Authorization` header.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ rootKey: [] }],
    tags: [...new Set(procedures.map(serviceOf))].sort().map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        rootKey: { type: "http", scheme: "bearer", description: "A root key of the workspace that is acted in." },
      },
      schemas: { ErrorResponse: responseSchema(ErrorResponse, DIALECT) },
    },
  };
}

const LIVENESS: JsonSchema = {
  operationId: "liveness",
  summary: "Tell whether the server lives",
  security: [],
  tags: ["liveness"],
  responses: {
    200: success(
      z.strictObject({
        data: z.strictObject({ message: z.string() }),
        meta: z.strictObject({ requestId: z.string() }),
      }),
    ),
    412: failure(["precondition_failed"]),
    500: failure(["unexpected_error"]),
  },
};

function operation(procedure: AnyProcedure): JsonSchema {
  const kindsByStatus = new Map<number, ErrorKind[]>();
  for (const kind of new Set([...COMMON_ERRORS, ...procedure.errors])) {
    const { status } = ERROR_KINDS[kind];
    kindsByStatus.set(status, [...(kindsByStatus.get(status) ?? []), kind]);
  }
  const failures = [...kindsByStatus].map(([status, kinds]) => [String(status), failure(kinds)]);
  return {
    operationId: procedure.path,
    summary: procedure.summary,
    description: `${procedure.description}\n\n**Root-key permissions:** ${procedure.permissions.map(describeNeeded).join("; ")}`,
    tags: [serviceOf(procedure)],
    ...(procedure.addition === true ? { "x-postern-addition": true } : {}),
    requestBody: {
      required: true,
      content: { "application/json": { schema: requestSchema(procedure.body, DIALECT) } },
    },
    responses: { 200: success(successBody(procedure)), ...Object.fromEntries(failures) },
  };
}

function success(body: z.ZodType): JsonSchema {
  return { description: "Done.", content: { "application/json": { schema: responseSchema(body, DIALECT) } } };
}

function failure(kinds: readonly ErrorKind[]): JsonSchema {
  const schema = { $ref: "#/components/schemas/ErrorResponse" };
  return {
    description: kinds.map((kind) => `\`${kind}\`: ${ERROR_KINDS[kind].explanation}`).join("\n\n"),
    content: { "application/json": { schema }, "application/problem+json": { schema } },
  };
}

const serviceOf = ({ path }: AnyProcedure): string => path.slice(0, path.indexOf("."));

const byPath = (a: AnyProcedure, b: AnyProcedure): number => (a.path < b.path ? -1 : 1);

/** Built when first asked for: most processes never are. */
export function registerOpenApi(app: FastifyInstance, procedures: readonly AnyProcedure[]): void {
  let text: string | undefined;
  app.get("/openapi.json", (_request, reply) => {
    text ??= JSON.stringify(buildOpenApi(procedures));
    reply.type("application/json").send(text);
  });
}
