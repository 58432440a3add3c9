import type { FastifyInstance, FastifyRequest } from "fastify";
import { DEGRADATIONS, type Health } from "../health.ts";

const LIVENESS_SCHEMA = {
  type: "object",
  required: ["data", "meta"],
  properties: {
    data: { type: "object", required: ["message"], properties: { message: { type: "string" } } },
    meta: { type: "object", required: ["requestId"], properties: { requestId: { type: "string" } } },
  },
};

/**
 * `/v2/liveness` is part of the API (api-v2.md section 19); `/livez` and `/readyz` are for the probes of the cluster. `?verbose` lists
 * degradations, which do not make the replica unready.
 */
export function registerHealth(
  app: FastifyInstance,
  health: () => Health,
  observe: (request: FastifyRequest, status: number) => void,
): void {
  app.get("/v2/liveness", { schema: { response: { 200: LIVENESS_SCHEMA } } }, (request, reply) => {
    observe(request, 200);
    reply.send({ data: { message: "OK" }, meta: { requestId: request.id } });
  });
  app.get("/livez", async () => ({ status: "ok" }));
  app.get<{ Querystring: { verbose?: string } }>("/readyz", async (request, reply) => {
    const { ready, degradations } = health();
    const status = ready ? "ready" : "not ready";
    reply.status(ready ? 200 : 503);
    if (request.query.verbose === undefined) return { status };
    return { status, degradations: degradations.map((reason) => ({ reason, meaning: DEGRADATIONS[reason] })) };
  });
}
