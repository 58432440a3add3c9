import type { Deps } from "../../deps.ts";
import { v1Procedures } from "../../v1/index.ts";
import type { OldApi } from "../old-api.ts";
import { registerCodePages } from "./code-pages.ts";
import { v1Error } from "./errors.ts";
import { createV1Front, registerV1Preflight, setV1Headers, type V1Settings } from "./front.ts";
import { buildV1OpenApi } from "./openapi.ts";
import { serveV1 } from "./serve.ts";
import { createV1Usage } from "./usage.ts";

export type { V1Settings };

/** OpenAPI documents of v1, by path. */
export const V1_DOCUMENTS = { "/v1/openapi.json": () => buildV1OpenApi(v1Procedures) };

/** Creates everything that a server needs to serve v1. Without this module and the folders `v1/`, a server serves only v2. */
export function createV1(deps: Deps, settings: V1Settings): OldApi {
  const front = createV1Front(settings);
  const uses = createV1Usage(deps);
  const headers = front.headersOf();
  return {
    isServed: settings.isServed,
    prefix: "/v1/",
    procedures: v1Procedures.map((procedure) => serveV1(procedure, { front, uses })),
    documents: V1_DOCUMENTS,
    register(app, sendError) {
      registerCodePages(app, sendError);
      registerV1Preflight(app, front);
    },
    bodyOf: v1Error,
    setHeaders: (request, reply) => setV1Headers(reply, request.id, request.routeOptions.config?.headers ?? headers),
    settle: uses.settle,
  };
}
