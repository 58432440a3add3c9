import type { AddressInfo } from "node:net";
import { fastify } from "fastify";
import type { Registry } from "prom-client";
import type { Admin } from "./admin.ts";
import { registerDocuments } from "./documents.ts";
import { registerDocsPage } from "./plugins/docs-page.ts";
import type { ProbeAnswer } from "./plugins/health.ts";

/**
 * What customers of the API need not reach: probes, metrics, and the page that shows the API, on a port of their own. It answers from
 * the start of the process on, also while the API cannot be served yet. Throws when the port is taken.
 */
export async function startAdminApp(options: {
  host: string;
  port: number;
  readyz: (isVerbose: boolean) => ProbeAnswer;
  metrics: () => Registry;
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
  registerDocuments(app);
  // Calls go to the API, which is at another address.
  registerDocsPage(app, { makesCalls: false });
  await app.listen({ host, port });
  const { address, family, port: bound } = app.server.address() as AddressInfo;
  return {
    url: `http://${family === "IPv6" ? `[${address}]` : address}:${bound}`,
    close: () => app.close(),
  };
}
