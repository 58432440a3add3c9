import type { FastifyInstance } from "fastify";
import { buildOpenApi, registerOpenApi } from "./plugins/openapi.ts";
import { buildV1OpenApi } from "./plugins/openapi-v1.ts";
import { v1Procedures } from "./v1/index.ts";
import { procedures } from "./v2/index.ts";

/** Serves the OpenAPI documents of v1 and v2. */
export function registerDocuments(app: FastifyInstance): void {
  registerOpenApi(app, {
    "/openapi.json": () => buildOpenApi(procedures),
    "/v1/openapi.json": () => buildV1OpenApi(v1Procedures),
  });
}
