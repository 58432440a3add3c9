import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import { isKubeError } from "./runtime/kube-client.ts";
import type { WatchState } from "./runtime/watches.ts";

export interface AdminOptions {
  readonly host: string;
  readonly port: number;
  readonly registry: Registry;
  /** Returns the reasons why the operator is not ready. A follower is ready too once its caches are filled. */
  readonly notReady: () => readonly string[];
}

/** Starts the server for `/livez`, `/readyz` and `/metrics`. */
export async function startAdmin({
  host,
  port,
  registry,
  notReady,
}: AdminOptions): Promise<{ url: string; close(): Promise<void> }> {
  const respond = async (path: string | undefined): Promise<{ status: number; text: string; type?: string }> => {
    if (path === "/livez") return { status: 200, text: "ok\n" };
    if (path === "/readyz") {
      const reasons = notReady();
      if (reasons.length === 0) return { status: 200, text: "ok\n" };
      return { status: 503, text: reasons.map((reason) => `not ready: ${reason}\n`).join("") };
    }
    if (path !== "/metrics") return { status: 404, text: "" };
    return { status: 200, text: await registry.metrics(), type: registry.contentType };
  };
  const server = createServer(async (request, response) => {
    const { status, text, type = "text/plain; charset=utf-8" } = await respond(request.url);
    response.writeHead(status, { "content-type": type }).end(text);
  });
  server.listen(port, host);
  await once(server, "listening");
  const { port: bound } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await once(server, "close");
    },
  };
}

/**
 * Maximum time since a watch last received data. An API server sends a bookmark every minute, and a silent watch is reopened after 100 s.
 */
export const WATCH_DEADLINE_MS = 120_000;

/** Returns a message that explains why this watch is unreliable; `undefined` if it is reliable. */
export function watchProblem({ resource, namespace, ageMs, failure }: WatchState): string | undefined {
  const what = namespace === undefined ? resource : `${resource} in ${namespace}`;
  const because = failure === undefined ? "" : `: ${failure instanceof Error ? failure.message : String(failure)}`;
  // A missing permission counts as a problem immediately, because the operator misses every change until somebody grants it.
  if (isKubeError(failure, 401) || isKubeError(failure, 403))
    return `the operator has no permission to watch ${what}${because}`;
  if (ageMs === undefined) return `${what} are not listed yet${because}`;
  if (ageMs > WATCH_DEADLINE_MS)
    return `the watch of ${what} has had no response for ${Math.round(ageMs / 1000)} s${because}`;
  return undefined;
}
