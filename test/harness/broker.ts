import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { MissingPart } from "./parts/find.ts";
import type { Address, Part } from "./parts/parts.ts";

/** Environment variable with the URL from which test workers request shared services; set by the main process of the run. */
export const BROKER_URL = "TEST_POSTERN_BROKER";

type Running = { address: Address; stop(): Promise<void> };

/** Imported only by the process that starts a service; all others request its address. */
async function startPart(part: Part): Promise<Running> {
  const parts = await import("./parts/parts.ts");
  return await parts.startPart(part);
}

/**
 * Starts each shared service once, on the first request, and keeps it until `stopAll`, so that tests without Postgres do not wait for it.
 */
export class Parts {
  readonly #started = new Map<Part, Promise<Running>>();

  async address(part: Part): Promise<Address> {
    let running = this.#started.get(part);
    if (running === undefined) {
      running = startPart(part);
      this.#started.set(part, running);
    }
    return (await running).address;
  }

  async stopAll(): Promise<void> {
    const started = [...this.#started.values()];
    this.#started.clear();
    // A service that failed to start has reported the error to its requester and needs no stop.
    const running = (await Promise.allSettled(started)).flatMap((r) => (r.status === "fulfilled" ? [r.value] : []));
    await Promise.all(running.map((part) => part.stop()));
  }
}

/** Services of this process outside a test run, for example in a benchmark. */
const ownParts = new Parts();

/** Stops the services that this process started. Scripts that use the harness outside the test runner call it at the end. */
export const stopOwnParts = () => ownParts.stopAll();

/**
 * Returns the address of a shared service, which starts on the first request: in a test run in the main process, otherwise in this one.
 * Throws an error of one line with an installation hint if the service is unavailable.
 */
export async function partAddress(part: Part): Promise<Address> {
  const broker = process.env[BROKER_URL];
  if (broker === undefined) return await ownParts.address(part);
  const response = (await getJson(`${broker}/${part}`)) as HttpResponse;
  if ("address" in response) return response.address;
  throw response.missing ? new MissingPart(response.error) : new Error(response.error);
}

type HttpResponse = { address: Address } | { error: string; missing: boolean };

/** `fetch` times out after five minutes, but building the Kubernetes programs may take longer. */
async function getJson(url: string): Promise<unknown> {
  const request = get(url, { agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return await json(response);
}

/** Serves `partAddress` to other processes on 127.0.0.1. `close` also stops the services. */
export async function startBroker(): Promise<{ url: string; close(): Promise<void> }> {
  const parts = new Parts();
  const server = createServer((request, response) => {
    const part = request.url?.slice(1) as Part;
    parts.address(part).then(
      (address) => reply(response, 200, { address }),
      (error: unknown) => {
        const text = error instanceof Error ? error.message : String(error);
        reply(response, 503, { error: text, missing: error instanceof MissingPart });
      },
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.close();
      server.closeAllConnections();
      await parts.stopAll();
    },
  };
}

function reply(response: ServerResponse, status: number, body: HttpResponse): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}
