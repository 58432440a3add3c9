import { fastify, type onRequestAsyncHookHandler } from "fastify";
import { type Asked, type Caller, REPORTS } from "../apps/typescript/outcome.ts";
import { verify } from "../apps/typescript/verify-with-fetch.ts";

const app = fastify();
app.decorateRequest("caller", undefined);

/**
 * Returns a hook that allows requests whose key meets the requirements. The handler reads the caller from `request.getDecorator("caller")`.
 */
function needsKey(asked: Asked): onRequestAsyncHookHandler {
  return async (request, reply) => {
    const outcome = await verify(request.headers.authorization, asked);
    if ("refusal" in outcome) {
      const { status, headers, error } = outcome.refusal;
      return reply.code(status).headers(headers).send({ error });
    }
    request.setDecorator<Caller>("caller", outcome.caller);
  };
}

app.get("/reports", { onRequest: needsKey(REPORTS) }, async (request) => {
  const { keyId, externalId, meta } = request.getDecorator<Caller>("caller");
  return { reports: [], for: { keyId, externalId, plan: meta.plan } };
});

const url = await app.listen({ port: Number(process.env.PORT ?? 3001), host: "127.0.0.1" });
console.log(`listening on ${url}`);
