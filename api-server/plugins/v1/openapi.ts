import * as z from "zod";
import { ERROR_KINDS, type ErrorKind } from "../../../core/errors.ts";
import { describeRequired, type RequiredPermission } from "../../domain/permissions/required-permissions.ts";
import { type AnyV1Procedure, isOpen } from "../../v1/procedure.ts";
import { createDocumentSchemas, type DocumentSchemas, type JsonSchema } from "../json-schema.ts";
import { describeServices } from "../openapi-components.ts";
import { exampleOf, requestExamples } from "../openapi-examples.ts";
import { V1_CODES, type V1Code, v1FailureOf, v1RefusalOf } from "./errors.ts";

/* Builds the OpenAPI 3.1 document of v1. Like the document of v2, it is generated from the schemas that validate requests. */

const API_VERSION = "1.0.0";

const DESCRIPTION = `The first generation of the API, which is deprecated: the header \`Link\` of each answer names the procedure that takes its place, \`Deprecation\` says since when, and \`Sunset\`, when it is sent, until when this generation is served.

Reads are a GET with a query, in which a repeated parameter is a list; all else is a POST with a JSON body. Unknown fields are ignored. The content is judged before the root key. A path that does not exist is 404 \`NOT_FOUND\`, another method than the documented one 405 \`METHOD_NOT_ALLOWED\`. While the generation is switched off, each call is answered 410 \`GONE\`.`;

const ErrorResponse = z
  .object({
    error: z
      .object({
        code: z
          .enum(Object.keys(V1_CODES) as [V1Code, ...V1Code[]])
          .describe("Error code for programs.")
          .meta({ examples: ["NOT_FOUND"] }),
        docs: z
          .string()
          .describe("URL of a page about the code.")
          .meta({ examples: ["https://postern.example/api-reference/errors/code/NOT_FOUND"] }),
        message: z
          .string()
          .describe("Human-readable description of the error.")
          .meta({ examples: ["There is no key key_4fGh7Jk2LmN8pQrS in the workspace."] }),
        requestId: z
          .string()
          .describe("Id of the request, equal to the header `X-Request-Id`.")
          .meta({ examples: ["req_1aBc2DeF3gHi4JkL"] }),
      })
      .describe("Details of the error."),
  })
  .describe("Every error has this form.");

const HEADERS: Readonly<Record<string, JsonSchema>> = {
  RequestId: {
    description: "Id that the server creates for each request. Logs, events and audit rows contain it.",
    schema: { type: "string", examples: ["req_1aBc2DeF3gHi4JkL"] },
  },
  Deprecation: {
    description: "Since when the procedure is deprecated (RFC 9745).",
    schema: { type: "string", examples: ["@1767225600"] },
  },
  Sunset: {
    description: "When the procedure will no longer be served (RFC 8594), if this has been decided.",
    schema: { type: "string", examples: ["Thu, 31 Dec 2026 00:00:00 GMT"] },
  },
  Link: {
    description: "The v2 procedure that replaces this one.",
    schema: { type: "string", examples: ['</v2/keys.createKey>; rel="successor-version"'] },
  },
  RetryAfter: {
    description: "Seconds to wait before the next attempt.",
    schema: { type: "integer", minimum: 0, examples: [42] },
  },
};

const ON_EACH_RESPONSE: JsonSchema = {
  "X-Request-Id": { $ref: "#/components/headers/RequestId" },
  Deprecation: { $ref: "#/components/headers/Deprecation" },
  Sunset: { $ref: "#/components/headers/Sunset" },
  Link: { $ref: "#/components/headers/Link" },
};

export function buildV1OpenApi(procedures: readonly AnyV1Procedure[]): JsonSchema {
  const schemas = createDocumentSchemas(new Map<z.ZodType, string>([[ErrorResponse, "ErrorResponse"]]));
  schemas.response(ErrorResponse);
  const paths: Record<string, JsonSchema> = {};
  for (const procedure of [...procedures].sort((a, b) => (a.path < b.path ? -1 : 1))) {
    const path = `/v1/${procedure.path.replaceAll(/:(\w+)/g, "{$1}")}`;
    paths[path] = { ...paths[path], [procedure.method.toLowerCase()]: operation(procedure, schemas) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Postern, first generation",
      version: API_VERSION,
      description: DESCRIPTION,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/", description: "The server that serves this document." }],
    security: [{ rootKey: [] }],
    tags: describeServices(new Set(procedures.map(serviceOf))),
    paths,
    components: {
      securitySchemes: {
        rootKey: { type: "http", scheme: "bearer", description: "A root key of the workspace that the call is about." },
      },
      schemas: schemas.components(),
      headers: HEADERS,
      examples: Object.fromEntries(codesIn(paths).map((code) => [code, errorExample(code)])),
    },
  };
}

function operation(procedure: AnyV1Procedure, schemas: DocumentSchemas): JsonSchema {
  const { path, summary, description, successor, method } = procedure;
  return {
    operationId: operationIdOf(path),
    summary,
    description: `${description}\n\n**Root-key permissions:** ${describePermissions(procedure)}\n\n**In v2:** \`${successor}\``,
    deprecated: true,
    tags: [serviceOf(procedure)],
    ...(isOpen(procedure) ? { security: [] } : {}),
    ...(method === "GET" ? { parameters: parameters(procedure, schemas) } : {}),
    ...(method === "POST" ? { requestBody: requestBody(procedure, schemas) } : {}),
    responses: { ...successes(procedure, schemas), ...failures(procedure) },
  };
}

/** Returns the operation id of a path. Parameters, which only unversioned paths have, are left out of the id. */
export const operationIdOf = (path: string): string => path.replaceAll(/\/:\w+/g, "").replaceAll("/", ".");

const serviceOf = ({ path }: AnyV1Procedure): string => path.split(/[./]/, 1)[0] ?? path;

function describePermissions(procedure: AnyV1Procedure): string {
  if (isOpen(procedure)) return "no root key is needed";
  return requiredBy(procedure).map(describeRequired).join("; ");
}

const requiredBy = (procedure: AnyV1Procedure): RequiredPermission[] =>
  isOpen(procedure) ? [] : Object.values(procedure.permissions);

function parameters({ path, input }: AnyV1Procedure, schemas: DocumentSchemas): JsonSchema[] {
  const { properties = {}, required = [] } = schemas.request(input) as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => {
    const isOfPath = path.includes(`/:${name}`);
    return {
      name,
      in: isOfPath ? "path" : "query",
      required: isOfPath || required.includes(name),
      description,
      schema,
    };
  });
}

function requestBody({ input }: AnyV1Procedure, schemas: DocumentSchemas): JsonSchema {
  const schema = schemas.request(input);
  const examples = requestExamples(schema, schemas.components());
  return { required: true, content: { "application/json": { schema, examples } } };
}

function successes(
  { status, response, otherResponses = {} }: AnyV1Procedure,
  schemas: DocumentSchemas,
): Record<string, JsonSchema> {
  const responses = Object.entries({ ...otherResponses, [status ?? 200]: response });
  return Object.fromEntries(
    responses.map(([code, body]) => {
      const schema = schemas.response(body);
      const example = exampleOf(schema, schemas.components());
      return [
        code,
        {
          description: DONE[code] ?? "Done.",
          headers: ON_EACH_RESPONSE,
          content: { "application/json": { schema, example } },
        },
      ];
    }),
  );
}

const DONE: Readonly<Record<string, string>> = {
  202: "Accepted; the work is done later.",
  404: "The outcome of the verification, sent with this status.",
};

/** Meanings of each code in a response: the general meaning of the code, the explanations of error kinds with this code, or both. */
type Meanings = Map<V1Code, string[]>;

function failures(procedure: AnyV1Procedure): Record<string, JsonSchema> {
  const byStatus = new Map<number, Meanings>();
  const add = (status: number, code: V1Code, meaning: string) => {
    const meanings = byStatus.get(status) ?? new Map<V1Code, string[]>();
    byStatus.set(status, meanings);
    meanings.set(code, [...(meanings.get(code) ?? []), meaning]);
  };
  const addCode = (status: number, code: V1Code) => add(status, code, V1_CODES[code]);
  const addKind = (kind: ErrorKind) => {
    const { status, code } = v1FailureOf(kind);
    add(status, code, ERROR_KINDS[kind].explanation);
  };

  addCode(400, "BAD_REQUEST");
  if (procedure.method === "POST") addKind("request_body_too_large");
  addKind("request_timeout");
  addCode(410, "GONE");
  addCode(500, "INTERNAL_SERVER_ERROR");
  if (!isOpen(procedure)) {
    addCode(401, "UNAUTHORIZED");
    addCode(403, "FORBIDDEN");
    for (const required of requiredBy(procedure)) {
      const { status, code } = v1RefusalOf(required);
      if (byStatus.get(status)?.has(code) !== true) addCode(status, code);
    }
    addCode(429, "RATE_LIMITED");
  }
  for (const kind of procedure.errors) addKind(kind);

  return Object.fromEntries(
    [...byStatus].map(([status, meanings]) => {
      // A procedure must not define its own response for the status of an error, because the document can contain only one response per
      // status.
      const { otherResponses = {} } = procedure;
      const own = status in otherResponses;
      if (own) throw new Error(`${procedure.path} answers ${status} both with a body of its own and with an error`);
      return [status, failure(status, meanings)];
    }),
  );
}

function failure(status: number, meanings: Meanings): JsonSchema {
  const codes = [...meanings.keys()];
  const retry = status === 429 ? { "Retry-After": { $ref: "#/components/headers/RetryAfter" } } : {};
  return {
    description: [...meanings].map(([code, texts]) => `\`${code}\`: ${texts.join(" ")}`).join("\n\n"),
    headers: { ...ON_EACH_RESPONSE, ...retry },
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/ErrorResponse" },
        examples: Object.fromEntries(codes.map((code) => [code, { $ref: `#/components/examples/${code}` }])),
      },
    },
  };
}

/** Returns the codes whose examples are referenced in a part of the document. */
const codesIn = (paths: JsonSchema): V1Code[] => {
  const text = JSON.stringify(paths);
  return (Object.keys(V1_CODES) as V1Code[]).filter((code) => text.includes(`"#/components/examples/${code}"`));
};

/** Returns an example as the server would send it; the message depends on the call. */
function errorExample(code: V1Code): JsonSchema {
  const message = V1_CODES[code].replace(/\. .*$/s, ".");
  const docs = `https://postern.example/api-reference/errors/code/${code}`;
  return { summary: code, value: { error: { code, docs, message, requestId: "req_1aBc2DeF3gHi4JkL" } } };
}
