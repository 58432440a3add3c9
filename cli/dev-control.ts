import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { RefillRun } from "../api-server/credits/refill.ts";
import type { DevState } from "./dev-state.ts";

/*
 * Control port of `postern dev`, on 127.0.0.1. Other commands use it to reach the counters, which `postern dev` keeps in its memory.
 * Requests need the token in dev.json.
 */

export interface DevControl {
  readonly state: NonNullable<DevState["control"]>;
  close(): Promise<void>;
}

/** Result of `refill`; `undefined` if another process runs the refill. */
type Refilled = RefillRun | undefined;

const REFILL = /^\/refill\/(\d{4}-\d{2}-\d{2})$/;
const RESPONSE_DEADLINE_MS = 120_000;

export async function startDevControl({
  refill,
}: {
  refill: (date: string) => Promise<Refilled>;
}): Promise<DevControl> {
  const token = randomBytes(24).toString("base64url");
  const expected = Buffer.from(`Bearer ${token}`);
  const server = createServer(async (request, response) => {
    const given = Buffer.from(request.headers.authorization ?? "");
    const isAllowed = given.length === expected.length && timingSafeEqual(given, expected);
    const [, date] = REFILL.exec(request.url ?? "") ?? [];
    if (!isAllowed || request.method !== "POST" || date === undefined) {
      response.writeHead(isAllowed ? 404 : 401).end();
      return;
    }
    try {
      response.end(JSON.stringify((await refill(date)) ?? null));
    } catch (error) {
      response.writeHead(500).end(error instanceof Error ? error.message : String(error));
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    state: { url: `http://127.0.0.1:${port}`, token },
    async close() {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Runs the refill of a UTC date in a running `postern dev`. Throws the error that `postern dev` reports. */
export async function refillInDev({ url, token }: DevControl["state"], date: string): Promise<Refilled> {
  const response = await fetch(`${url}/refill/${date}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    // Rejects redirects, which would send the token to another server.
    redirect: "error",
    signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the running postern dev failed: ${text || response.statusText}`);
  return (JSON.parse(text) as Refilled | null) ?? undefined;
}
