import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import type { ConcurrencyLimiter } from "../../edge/concurrency-limiter.ts";
import { guardSocket, type OnInternalError } from "../../http/http1/guard.ts";
import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import { headerIn } from "../http/header-in.ts";
import type { InFlight, InFlightSet } from "../http/in-flight.ts";
import type { AppConnection, AppExchange } from "./app-connection.ts";
import { answerFailure, type Failure, type FailureDeps } from "./failures.ts";
import { type Extras, type ForwardedRequest, linesFor } from "./forward.ts";
import { InterimResponses } from "./interim-responses.ts";
import { passableHead } from "./response-head.ts";
import { Tunnel, type TunnelWaits } from "./tunnel.ts";
import type { Upstream } from "./upstream.ts";

/*
 * An admitted upgrade (WebSocket): the gate requests the upgrade from the app, and joins both sockets after the 101 response.
 *
 *   requested ──101──► joined ──both ends──► over
 *     │                   │
 *     │ other response    │ error of either side, key no longer valid
 *     ▼                   ▼
 *   forwarded           both destroyed
 *
 * After the 101 response, the gate neither parses nor changes data. Either side may half-close. An HTTP/2 client has a stream in place of
 * a connection (RFC 8441), and the app receives an HTTP/1.1 upgrade.
 */

export interface UpgradeDeps {
  readonly upstream: Pick<Upstream, "connectForUpgrade" | "origin">;
  /** Limits the connections that are upgraded or being upgraded. */
  readonly limiter: ConcurrencyLimiter;
  readonly inFlight: InFlightSet;
  readonly failing: FailureDeps;
  /** Maximum time for a client to read the written part of a response. */
  readonly responseReadMs: number;
  readonly waits: TunnelWaits;
  readonly onInternalError: OnInternalError;
}

/** If the limiter has a free slot, requests an upgrade from the app with the headers `request.head.forwarded`. */
export function openUpgrade(
  deps: UpgradeDeps,
  client: ServerExchange,
  request: ForwardedRequest,
  extras: Extras,
  startedMs: number,
): void {
  if (client.isOver) return;
  const { limiter } = deps;
  const { address } = request;
  // The connection is not reused even if the app declines the upgrade.
  client.keepsAlive = false;
  client.lingers = true;
  if (!limiter.tryAcquire(address)) {
    answerFailure(deps.failing, client, { failure: "busy", why: "" }, { ...extras, close: true });
    return;
  }
  client.onceClosed(() => limiter.release(address));
  new Asking(deps, client, extras, startedMs).ask(request);
}

class Asking implements AppExchange, InFlight {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: InFlight["admission"];
  readonly #parts: UpgradeDeps;
  readonly #client: ServerExchange;
  readonly #extras: Extras;
  readonly #interim: InterimResponses;
  #app: AppConnection | undefined;
  #isOver = false;
  #isPaused = false;
  #pausedMs = 0;

  constructor(deps: UpgradeDeps, client: ServerExchange, extras: Extras, startedMs: number) {
    this.#parts = deps;
    this.#client = client;
    this.#extras = extras;
    this.admission = extras.admission;
    this.startedMs = startedMs;
    this.checkedMs = startedMs;
    this.#interim = new InterimResponses(client);
  }

  ask(request: ForwardedRequest): void {
    const { upstream, inFlight } = this.#parts;
    inFlight.add(this);
    this.#client.onClose = () => this.#leave();
    // A client that waits for the upgrade sends nothing, so the end of its input means that it has disconnected.
    this.#client.onInputEnd = () => this.cut();
    const app = upstream.connectForUpgrade();
    this.#app = app;
    const lines = linesFor(upstream.origin, this.#client, request.head);
    const head = `${request.method} ${request.target} HTTP/1.1\r\n${lines}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    app.begin(this, head, undefined, false);
  }

  abortIfStalled(nowMs: number): void {
    if (this.#isPaused && nowMs - this.#pausedMs > this.#parts.responseReadMs) this.cut();
  }

  cut(): void {
    this.#leave();
    this.#client.breakOff();
  }

  onInterim(status: number, headers: readonly string[]): void {
    if (!this.#isOver) this.#interim.pass(status, headers);
  }

  /** Called when the app declines the upgrade. */
  onHead(status: number, received: string, headers: readonly string[]): void {
    const client = this.#client;
    const head = passableHead({ status, reason: received, headers }, this.#extras, client);
    if (head.kind === "unusable") {
      this.#leave();
      this.#fail("unusable", head.why);
      return;
    }
    client.onInputEnd = undefined;
    client.begin({ status, ...head });
  }

  onData(bytes: Buffer): boolean {
    this.#isPaused = true;
    this.#pausedMs = performance.now();
    this.#client.write(Buffer.from(bytes), this.#onWritten);
    return false;
  }

  readonly #onWritten = (): void => {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    this.#app?.resume();
  };

  onReadEnd(): void {
    this.#client.flushHead();
  }

  onDrain(): void {}

  onComplete(): void {
    if (this.#isOver) return;
    this.#leave();
    this.#client.end();
  }

  onBroken(failure: Failure, error: Error): void {
    if (this.#isOver) return;
    this.#leave();
    if (this.#client.headersSent) this.#client.breakOff();
    else this.#fail(failure, error.message);
  }

  onUpgrade(headers: readonly string[], received: string, app: Socket, rest: Buffer): void {
    const { inFlight, onInternalError, waits } = this.#parts;
    const client = this.#client;
    const head = passableHead({ status: 101, reason: received, headers }, this.#extras, { isSwitching: true });
    const protocol = headerIn(headers, "upgrade") ?? "websocket";
    const why = head.kind === "unusable" ? head.why : whyNoWebSocket(client, protocol, headers);
    if (head.kind === "unusable" || why !== undefined) {
      app.destroy();
      this.#leave();
      this.#fail("unusable", why);
      return;
    }
    this.#leave({ keepsApp: true });
    guardSocket(app, onInternalError);
    const { duplex, early } = client.upgrade({ reason: head.reason, protocol, lines: head.lines });
    if (rest.length > 0) duplex.write(rest);
    if (early.length > 0) app.write(early);
    inFlight.add(new Tunnel(duplex, app, inFlight, this, waits));
  }

  #leave({ keepsApp = false } = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#client.onClose = undefined;
    this.#client.onInputEnd = undefined;
    this.#parts.inFlight.remove(this);
    if (!keepsApp) this.#app?.abort();
  }

  #fail(failure: Failure, why = ""): void {
    answerFailure(this.#parts.failing, this.#client, { failure, why }, { ...this.#extras, close: true });
  }
}

/** Suffix that RFC 6455, 1.3, defines for `Sec-WebSocket-Accept`. */
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Returns the reason why a 101 response does not start the requested WebSocket; `undefined` if it does. */
function whyNoWebSocket(client: ServerExchange, protocol: string, headers: readonly string[]): string | undefined {
  if (protocol.trim().toLowerCase() !== "websocket") return "it switches to another protocol than was asked for";
  const { madeKey } = client;
  // A client that sent its own key checks the response itself.
  if (madeKey === undefined) return undefined;
  const accept = createHash("sha1").update(`${madeKey}${ACCEPT_SUFFIX}`).digest("base64");
  if (headerIn(headers, "sec-websocket-accept")?.trim() === accept) return undefined;
  return "its Sec-WebSocket-Accept does not belong to the key";
}
