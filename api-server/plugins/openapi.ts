import type { FastifyInstance } from "fastify";
import * as z from "zod";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import { describeRequired } from "../domain/permissions/required-permissions.ts";
import type { AnyProcedure } from "../procedure.ts";
import { createDocumentSchemas, type DocumentSchemas, type JsonSchema } from "./json-schema.ts";
import {
  describeServices,
  ErrorResponse,
  errorExample,
  failure,
  HEADERS,
  MANAGEMENT_PARAMETERS,
  PROPAGATION_HEADER,
  QUOTA_HEADERS,
  SCHEMA_NAMES,
  SECURITY,
  SECURITY_SCHEMES,
} from "./openapi-components.ts";
import { exampleOf, requestExamples } from "./openapi-examples.ts";
import { ResponseMeta, successBody } from "./serve-v2.ts";

/* Builds OpenAPI 3.1 documents from the schemas that validate requests. */

const API_VERSION = "2.0.0";

/** Error kinds of every procedure (api-v2.md section 4.2). */
const COMMON_ERRORS: readonly ErrorKind[] = [
  "invalid_input",
  "request_body_unreadable",
  "unauthorized",
  "session_ended",
  "forbidden",
  "cross_origin_request",
  "no_role",
  "request_timeout",
  "request_body_too_large",
  "workspace_rate_limited",
  "unexpected_error",
  "service_unavailable",
  "server_busy",
];

const DESCRIPTION = `API keys, roles, rate limits and usage analytics. Every procedure is a POST with a JSON body and a root key in the \`Authorization\` header. The dashboard sends the session of a person in its place.

The last segment of \`error.type\` is the kind of the error; the whole is the address of a page about it. A path that does not exist is 404 \`not_found\`. Another method than the documented one is 405 \`method_not_allowed\` with an \`Allow\` header. With \`Accept: application/problem+json\`, errors have that content type.

Operations marked \`x-postern-addition\` exist for clients that manage objects from manifests.`;

export function buildOpenApi(procedures: readonly AnyProcedure[]): JsonSchema {
  const schemas = createDocumentSchemas(SCHEMA_NAMES);
  schemas.response(ErrorResponse);
  const common = commonFailures(procedures);
  const paths: Record<string, JsonSchema> = {};
  for (const procedure of [...procedures].sort(byPath)) {
    paths[`/v2/${procedure.path}`] = { post: operation(procedure, schemas, common) };
  }
  paths["/v2/liveness"] = { get: liveness(schemas) };
  return {
    openapi: "3.1.0",
    info: {
      title: "Postern",
      version: API_VERSION,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The server that serves this document." }],
    security: SECURITY,
    tags: describeServices(new Set([...procedures.map(serviceOf), "liveness"])),
    paths,
    components: {
      securitySchemes: SECURITY_SCHEMES,
      schemas: schemas.components(),
      parameters: MANAGEMENT_PARAMETERS,
      headers: HEADERS,
      responses: Object.fromEntries([...common].map(([status, kinds]) => [nameOf(kinds), failure(status, kinds)])),
      examples: Object.fromEntries(kindsOf(procedures).map((kind) => [kind, errorExample(kind)])),
    },
  };
}

const LIVENESS_ERRORS: readonly ErrorKind[] = ["precondition_failed", "unexpected_error"];

function liveness(schemas: DocumentSchemas): JsonSchema {
  const message = z
    .string()
    .describe("Free text.")
    .meta({ examples: ["OK"] });
  const body = z.strictObject({
    data: z.strictObject({ message }).describe("State of the server."),
    meta: ResponseMeta,
  });
  return {
    operationId: "liveness",
    summary: "Check that the server is alive",
    description:
      "Requires no root key, and uses neither Postgres nor Redis. It does not report whether the server is ready for traffic.",
    security: [],
    tags: ["liveness"],
    responses: {
      200: success(body, schemas, {}),
      ...Object.fromEntries(LIVENESS_ERRORS.map((kind) => [ERROR_KINDS[kind].status, withoutHeaders(kind)])),
    },
  };
}

function withoutHeaders(kind: ErrorKind): JsonSchema {
  const { headers: _headers, ...rest } = failure(ERROR_KINDS[kind].status, [kind]);
  return rest;
}

type KindsByStatus = ReadonlyMap<number, readonly ErrorKind[]>;

function groupByStatus(kinds: readonly ErrorKind[]): KindsByStatus {
  const groups = new Map<number, ErrorKind[]>();
  for (const kind of new Set(kinds)) {
    const { status } = ERROR_KINDS[kind];
    groups.set(status, [...(groups.get(status) ?? []), kind]);
  }
  return groups;
}

const failuresOf = (procedure: AnyProcedure): KindsByStatus => groupByStatus([...COMMON_ERRORS, ...procedure.errors]);

/** Returns the error responses that most procedures share, as components, so the document contains each only once. */
function commonFailures(procedures: readonly AnyProcedure[]): KindsByStatus {
  const common = groupByStatus(COMMON_ERRORS);
  const isUsed = ([status, kinds]: [number, readonly ErrorKind[]]) =>
    procedures.some((procedure) => failuresOf(procedure).get(status)?.length === kinds.length);
  return new Map([...common].filter(isUsed));
}

/** Returns the name of a shared response. The name is derived from the response's first error kind. */
const nameOf = ([kind = "unexpected_error"]: readonly ErrorKind[]): string =>
  ERROR_KINDS[kind].title.replaceAll(" ", "");

const kindsOf = (procedures: readonly AnyProcedure[]): ErrorKind[] =>
  [...new Set([...COMMON_ERRORS, ...LIVENESS_ERRORS, ...procedures.flatMap(({ errors }) => errors)])].sort();

function operation(procedure: AnyProcedure, schemas: DocumentSchemas, common: KindsByStatus): JsonSchema {
  const failures = [...failuresOf(procedure)].map(([status, kinds]) => [
    status,
    kinds.length === common.get(status)?.length
      ? { $ref: `#/components/responses/${nameOf(kinds)}` }
      : failure(status, kinds),
  ]);
  const changes = procedure.effect === "change";
  const headers = { ...QUOTA_HEADERS, ...(changes ? PROPAGATION_HEADER : {}) };
  return {
    operationId: procedure.path,
    summary: procedure.summary,
    description: `${procedure.description}\n\n**Root-key permissions:** ${Object.values(procedure.permissions).map(describeRequired).join("; ")}`,
    tags: [serviceOf(procedure)],
    ...(procedure.addition === true ? { "x-postern-addition": true } : {}),
    ...(changes
      ? { parameters: Object.keys(MANAGEMENT_PARAMETERS).map((name) => ({ $ref: `#/components/parameters/${name}` })) }
      : {}),
    requestBody: { required: true, content: { "application/json": requestContent(procedure, schemas) } },
    responses: { 200: success(successBody(procedure), schemas, headers), ...Object.fromEntries(failures) },
  };
}

function requestContent({ body }: AnyProcedure, schemas: DocumentSchemas): JsonSchema {
  const schema = schemas.request(body);
  return { schema, examples: requestExamples(schema, schemas.components()) };
}

function success(body: z.ZodType, schemas: DocumentSchemas, headers: JsonSchema): JsonSchema {
  const schema = schemas.response(body);
  const example = exampleOf(schema, schemas.components());
  return {
    description: "Done.",
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { "application/json": { schema, example } },
  };
}

const serviceOf = ({ path }: AnyProcedure): string => path.slice(0, path.indexOf("."));

const byPath = (a: AnyProcedure, b: AnyProcedure): number => (a.path < b.path ? -1 : 1);

/** A document is built on its first request, because most processes never receive one. */
export function registerOpenApi(app: FastifyInstance, documents: Readonly<Record<string, () => JsonSchema>>): void {
  for (const [path, build] of Object.entries(documents)) {
    let text: string | undefined;
    app.get(path, (_request, reply) => {
      text ??= JSON.stringify(build());
      reply.type("application/json").send(text);
    });
  }
}
