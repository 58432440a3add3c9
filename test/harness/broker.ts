import { once } from "node:events";
import { createServer, get, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { MissingPart } from "./parts/find.ts";
import type { Address, Part } from "./parts/parts.ts";

/** Where a worker of the test runner asks for parts; set by the run's main process and inherited by its workers. */
export const BROKER_URL = "TEST_POSTERN_BROKER";

type Running = { address: Address; stop(): Promise<void> };

/** Imported only by the process that starts a part, and only then; all others just ask for addresses. */
async function startPart(part: Part): Promise<Running> {
  const parts = await import("./parts/parts.ts");
  return await parts.startPart(part);
}

/**
 * Starts each part when it is first requested, once, and keeps it until `stopAll`. So tests that need no Postgres
 * do not wait for one.
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
    // A part that failed to start has reported that to its requester, and there is nothing to stop.
    const running = (await Promise.allSettled(started)).flatMap((r) => (r.status === "fulfilled" ? [r.value] : []));
    await Promise.all(running.map((part) => part.stop()));
  }
}

/** The parts of this process, when it is not inside a test run, for example in a benchmark. */
const ownParts = new Parts();

/** Stops what this process started. Call it at the end of a script that uses the harness outside of the test runner. */
export const stopOwnParts = () => ownParts.stopAll();

/**
 * Returns the address of a part: that of the run, which the main process starts on the first request, or, outside of a run, that
 * of this process. Throws an error of one line that says what to install when the part is not available.
 */
export async function partAddress(part: Part): Promise<Address> {
  const broker = process.env[BROKER_URL];
  if (broker === undefined) return await ownParts.address(part);
  const response = (await getJson(`${broker}/${part}`)) as HttpResponse;
  if ("address" in response) return response.address;
  throw response.missing ? new MissingPart(response.error) : new Error(response.error);
}

type HttpResponse = { address: Address } | { error: string; missing: boolean };

/** Not `fetch`, which times out after five minutes: building the Kubernetes programs may take longer. */
async function getJson(url: string): Promise<unknown> {
  const request = get(url, { agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  return await json(response);
}

/** Serves `partAddress` of other processes on 127.0.0.1. `close` stops the parts too. */
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
