import express, { type RequestHandler } from "express";
import { type Asked, type Caller, REPORTS } from "../apps/typescript/outcome.ts";
import { verify } from "../apps/typescript/verify-with-fetch.ts";

/** Returns a middleware that allows requests whose key meets the requirements. Handlers read the caller from `response.locals.caller`. */
function needsKey(asked: Asked): RequestHandler {
  return async (request, response, next) => {
    const outcome = await verify(request.headers.authorization, asked);
    if ("refusal" in outcome) {
      const { status, headers, error } = outcome.refusal;
      response.status(status).set(headers).json({ error });
      return;
    }
    response.locals.caller = outcome.caller;
    next();
  };
}

const app = express();
app.get("/reports", needsKey(REPORTS), (_, response) => {
  const { keyId, externalId, meta } = response.locals.caller as Caller;
  response.json({ reports: [], for: { keyId, externalId, plan: meta.plan } });
});

const server = app.listen(Number(process.env.PORT ?? 3001), "127.0.0.1", () => {
  const address = server.address();
  if (typeof address === "object") console.log(`listening on http://127.0.0.1:${address?.port}`);
});
