import type { AddressInfo } from "node:net";
import { fastify } from "fastify";
import type { Registry } from "prom-client";
import type { Admin } from "./health/probe-server.ts";
import { type Documents, registerDocsPage, registerDocuments } from "./plugins/docs-page.ts";
import type { ProbeResponse } from "./plugins/health.ts";

/**
 * Starts the admin server, which serves probes, metrics and the API page. It has a separate port, because customers of the API need none of
 * these. It serves from the start of the process, even before the API is served. Throws if the port is in use.
 */
export async function startAdminApp(options: {
  host: string;
  port: number;
  readyz: (isVerbose: boolean) => ProbeResponse;
  metrics: () => Registry;
  /** OpenAPI documents of old versions of the API. */
  documents?: Documents;
}): Promise<Admin> {
  const { host, port, readyz, metrics } = options;
  const app = fastify({ logger: false, forceCloseConnections: true });
  app.get("/livez", async () => ({ status: "ok" }));
  app.get<{ Querystring: { verbose?: string } }>("/readyz", async (request, reply) => {
    const { status, body } = readyz(request.query.verbose !== undefined);
    reply.status(status);
    return body;
  });
  app.get("/metrics", async (_request, reply) => {
    const registry = metrics();
    reply.type(registry.contentType);
    return registry.metrics();
  });
  registerDocuments(app, options.documents);
  // The admin page has a different origin than the API, so a browser could not call the API from it.
  registerDocsPage(app, { makesCalls: false });
  await app.listen({ host, port });
  const { address, family, port: bound } = app.server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`,
    close: () => app.close(),
  };
}
