import { serve } from "@hono/node-server";
import { Hono } from "hono";
import { createMiddleware } from "hono/factory";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import { type Asked, type Caller, REPORTS } from "../apps/typescript/outcome.ts";
import { verify } from "../apps/typescript/verify-with-fetch.ts";

/** Returns a middleware that allows requests whose key meets the requirements. Handlers read the caller from `c.var.caller`. */
const needsKey = (asked: Asked) =>
  createMiddleware<{ Variables: { caller: Caller } }>(async (c, next) => {
    const outcome = await verify(c.req.header("authorization"), asked);
    if ("refusal" in outcome) {
      const { status, headers, error } = outcome.refusal;
      return c.json({ error }, status as ContentfulStatusCode, { ...headers });
    }
    c.set("caller", outcome.caller);
    return await next();
  });

const app = new Hono();
app.get("/reports", needsKey(REPORTS), (c) => {
  const { keyId, externalId, meta } = c.var.caller;
  return c.json({ reports: [], for: { keyId, externalId, plan: meta.plan } });
});

serve({ fetch: app.fetch, port: Number(process.env.PORT ?? 3001), hostname: "127.0.0.1" }, ({ port }) => {
  console.log(`listening on http://127.0.0.1:${port}`);
});
