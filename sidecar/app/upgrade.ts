import { createHash } from "node:crypto";
import type { Socket } from "node:net";
import type { Places } from "../../edge/places.ts";
import { guardSocket, type OnFault } from "../../http1/guard.ts";
import type { ServerExchange } from "../../http1/server-exchange.ts";
import { headerIn } from "../http/header-in.ts";
import type { Ongoing, OngoingSet } from "../http/ongoing.ts";
import { passableHead } from "./answer-head.ts";
import type { AppConnection, AppExchange } from "./app-connection.ts";
import { answerFailure, type Failure, type FailureParts } from "./failures.ts";
import { type Extras, type ForwardedRequest, linesFor } from "./forward.ts";
import { InterimAnswers } from "./interim-answers.ts";
import { Tunnel, type TunnelWaits } from "./tunnel.ts";
import type { Upstream } from "./upstream.ts";

/*
 * An upgrade (WebSocket) that was admitted: requested from the app, and after its 101 two sockets joined in both directions.
 *
 *   asked ──101──► joined ──both ends──► over
 *     │              │
 *     │ other answer │ error of either, key no longer valid
 *     ▼              ▼
 *   passed back    both destroyed
 *
 * After the 101 nothing is parsed or changed. Either side may end its direction alone. A client of HTTP/2 has a stream in place of a connection
 * (RFC 8441), and its app an upgrade as from any other.
 */

export interface UpgradeParts {
  readonly upstream: Pick<Upstream, "connectForUpgrade" | "origin">;
  /** For connections that are upgraded, or being upgraded. */
  readonly places: Places;
  readonly ongoing: OngoingSet;
  readonly failing: FailureParts;
  /** For a client to take what was written of a response. */
  readonly answerIdleMs: number;
  readonly waits: TunnelWaits;
  readonly onFault: OnFault;
}

/** Requests the upgrade from the app, if there is a place for one more such connection. `request.head.forwarded` are the headers. */
export function openUpgrade(
  parts: UpgradeParts,
  client: ServerExchange,
  request: ForwardedRequest,
  extras: Extras,
  startedMs: number,
): void {
  if (client.isOver) return;
  const { places } = parts;
  const { address } = request;
  // Whatever the app says, the connection is not used for another request.
  client.keepsAlive = false;
  client.lingers = true;
  if (!places.tryTake(address)) {
    answerFailure(parts.failing, client, { failure: "busy", why: "" }, { ...extras, close: true });
    return;
  }
  client.onceClosed(() => places.release(address));
  new Asking(parts, client, extras, startedMs).ask(request);
}

class Asking implements AppExchange, Ongoing {
  slot = -1;
  readonly startedMs: number;
  checkedMs: number;
  readonly admission: Ongoing["admission"];
  readonly #parts: UpgradeParts;
  readonly #client: ServerExchange;
  readonly #extras: Extras;
  readonly #interim: InterimAnswers;
  #app: AppConnection | undefined;
  #isOver = false;
  #isPaused = false;
  #pausedMs = 0;

  constructor(parts: UpgradeParts, client: ServerExchange, extras: Extras, startedMs: number) {
    this.#parts = parts;
    this.#client = client;
    this.#extras = extras;
    this.admission = extras.admission;
    this.startedMs = startedMs;
    this.checkedMs = startedMs;
    this.#interim = new InterimAnswers(client);
  }

  ask(request: ForwardedRequest): void {
    const { upstream, ongoing } = this.#parts;
    ongoing.add(this);
    this.#client.onClose = () => this.#leave();
    // Only its end shows that the client is gone: it waits, and has nothing to send.
    this.#client.onInputEnd = () => this.cut();
    const app = upstream.connectForUpgrade();
    this.#app = app;
    const lines = linesFor(upstream.origin, this.#client, request.head);
    const head = `${request.method} ${request.target} HTTP/1.1\r\n${lines}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`;
    app.begin(this, head, undefined, false);
  }

  breakIfStalled(nowMs: number): void {
    if (this.#isPaused && nowMs - this.#pausedMs > this.#parts.answerIdleMs) this.cut();
  }

  cut(): void {
    this.#leave();
    this.#client.breakOff();
  }

  onInterim(status: number, headers: readonly string[]): void {
    if (!this.#isOver) this.#interim.pass(status, headers);
  }

  /** The app declines. */
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
    const { ongoing, onFault, waits } = this.#parts;
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
    guardSocket(app, onFault);
    const { duplex, early } = client.upgrade({ reason: head.reason, protocol, lines: head.lines });
    if (rest.length > 0) duplex.write(rest);
    if (early.length > 0) app.write(early);
    ongoing.add(new Tunnel(duplex, app, ongoing, this, waits));
  }

  #leave({ keepsApp = false } = {}): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#client.onClose = undefined;
    this.#client.onInputEnd = undefined;
    this.#parts.ongoing.remove(this);
    if (!keepsApp) this.#app?.abort();
  }

  #fail(failure: Failure, why = ""): void {
    answerFailure(this.#parts.failing, this.#client, { failure, why }, { ...this.#extras, close: true });
  }
}

/** RFC 6455, 1.3. */
const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Why a 101 does not begin the WebSocket that was asked for; undefined when it does. */
function whyNoWebSocket(client: ServerExchange, protocol: string, headers: readonly string[]): string | undefined {
  if (protocol.trim().toLowerCase() !== "websocket") return "it switches to another protocol than was asked for";
  const { madeKey } = client;
  // A client that sent a key of its own checks this itself.
  if (madeKey === undefined) return undefined;
  const accept = createHash("sha1").update(`${madeKey}${ACCEPT_SUFFIX}`).digest("base64");
  if (headerIn(headers, "sec-websocket-accept")?.trim() === accept) return undefined;
  return "its Sec-WebSocket-Accept does not belong to the key";
}
