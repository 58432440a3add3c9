import type { FastifyInstance } from "fastify";
import { v1Procedures } from "../v1/index.ts";
import { procedures } from "../v2/index.ts";
import { buildOpenApi, registerOpenApi } from "./openapi.ts";
import { buildV1OpenApi } from "./v1/openapi.ts";

/** Serves the OpenAPI documents of v1 and v2. */
export function registerDocuments(app: FastifyInstance): void {
  registerOpenApi(app, {
    "/openapi.json": () => buildOpenApi(procedures),
    "/v1/openapi.json": () => buildV1OpenApi(v1Procedures),
  });
}
