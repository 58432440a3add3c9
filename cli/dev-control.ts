import { randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { RefillRun } from "../api-server/credits/refill.ts";
import type { DevState } from "./dev-state.ts";

/*
 * A running `postern dev` keeps its counters in its own process, where no other process reaches them. So for other commands it performs
 * what needs the counters: over a port of 127.0.0.1, with a token that is in dev.json.
 */

export interface DevControl {
  readonly state: NonNullable<DevState["control"]>;
  close(): Promise<void>;
}

/** The result of `refill`: undefined while another process is refilling. */
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

/** Lets a running `postern dev` refill what is due on a UTC date. Throws its failure. */
export async function refillInDev({ url, token }: DevControl["state"], date: string): Promise<Refilled> {
  const response = await fetch(`${url}/refill/${date}`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    // The token is of this process alone.
    redirect: "error",
    signal: AbortSignal.timeout(RESPONSE_DEADLINE_MS),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the running postern dev failed: ${text || response.statusText}`);
  return (JSON.parse(text) as Refilled | null) ?? undefined;
}
