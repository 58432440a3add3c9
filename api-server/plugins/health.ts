import type { FastifyInstance, FastifyRequest } from "fastify";

/** One thing that must hold before traffic is welcome. `check` throws, with the reason, when it does not. */
export interface ReadinessCheck {
  readonly name: string;
  check(): Promise<void>;
}

const CHECK_MS_MAX = 2000;

const LIVENESS_SCHEMA = {
  type: "object",
  required: ["data", "meta"],
  properties: {
    data: { type: "object", required: ["message"], properties: { message: { type: "string" } } },
    meta: { type: "object", required: ["requestId"], properties: { requestId: { type: "string" } } },
  },
};

/** `/v2/liveness` is part of the API (section 19); `/livez` and `/readyz` are for the probes of the cluster. */
export function registerHealth(
  app: FastifyInstance,
  checks: readonly ReadinessCheck[],
  observe: (request: FastifyRequest, status: number) => void,
): void {
  app.get("/v2/liveness", { schema: { response: { 200: LIVENESS_SCHEMA } } }, (request, reply) => {
    observe(request, 200);
    reply.send({ data: { message: "OK" }, meta: { requestId: request.id } });
  });
  app.get("/livez", async () => ({ status: "ok" }));
  app.get("/readyz", async (_request, reply) => {
    const results = await Promise.all(checks.map(run));
    const ready = results.every(({ ok }) => ok);
    reply.status(ready ? 200 : 503);
    return { status: ready ? "ready" : "not ready", checks: results };
  });
}

async function run({ name, check }: ReadinessCheck): Promise<{ name: string; ok: boolean; reason?: string }> {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_MS_MAX} ms`)), CHECK_MS_MAX);
  });
  try {
    await Promise.race([check(), tooLate]);
    return { name, ok: true };
  } catch (error) {
    return { name, ok: false, reason: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
  }
}
