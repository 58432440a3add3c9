import type { FastifyInstance, FastifyRequest } from "fastify";
import { DEGRADATIONS, type Health } from "../health/health.ts";

const LIVENESS_SCHEMA = {
  type: "object",
  required: ["data", "meta"],
  properties: {
    data: { type: "object", required: ["message"], properties: { message: { type: "string" } } },
    meta: { type: "object", required: ["requestId"], properties: { requestId: { type: "string" } } },
  },
};

export interface ProbeResponse {
  readonly status: number;
  readonly body: object;
}

/** Sends the response of `/readyz`. */
export function answerReadyz({ ready, degradations }: Health, isVerbose: boolean): ProbeResponse {
  const status = ready ? "ready" : "not ready";
  const reasons = degradations.map((reason) => ({ reason, meaning: DEGRADATIONS[reason] }));
  return { status: ready ? 200 : 503, body: isVerbose ? { status, degradations: reasons } : { status } };
}

/**
 * Serves `/v2/liveness`, which is part of the API (api-v2.md section 19), and `/livez` and `/readyz` for cluster probes. `?verbose` lists
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
    const { status, body } = answerReadyz(health(), request.query.verbose !== undefined);
    reply.status(status);
    return body;
  });
}
