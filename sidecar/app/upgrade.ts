import { type ClientRequest, request as httpRequest, type IncomingMessage, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Places } from "../../edge/places.ts";
import { guardEmits, guardSocket, type OnFault } from "../../http1/guard.ts";
import type { Head } from "../http/head.ts";
import type { Ongoing, OngoingSet } from "../http/ongoing.ts";
import { passableHead, type ReceivedHead } from "./answer-head.ts";
import { breakOff as breakOffAnswer } from "./break-off.ts";
import { answerFailure, type Failed, type FailureParts } from "./failures.ts";
import type { Extras } from "./forward.ts";
import { InterimAnswers } from "./interim-answers.ts";
import { Tunnel } from "./tunnel.ts";
import { ANSWER_HEAD_BYTES_MAX, failureOf } from "./upstream.ts";

/*
 * An upgrade (WebSocket) that was admitted: requested from the app, and after its 101 two sockets joined in both directions.
 *
 *   asked ──101──► joined ──both ends──► over
 *     │              │
 *     │ other answer │ error of either, key no longer valid
 *     ▼              ▼
 *   passed back    both destroyed
 *
 * After the 101 nothing is parsed or changed. Either side may end its direction alone.
 */

export interface UpgradeParts {
  readonly origin: URL;
  /** For connections that are upgraded, or being upgraded. */
  readonly places: Places;
  readonly ongoing: OngoingSet;
  readonly failing: FailureParts;
  /** From the end of the request to the head of the app's response. */
  readonly headersMs: number;
  readonly onFault: OnFault;
}

interface Client {
  readonly req: IncomingMessage;
  /** Owns the socket, and is used for the response when the app declines. */
  readonly res: ServerResponse;
  readonly socket: Duplex;
  /** Bytes after the request's head. */
  readonly head: Buffer;
}

const EARLY_BYTES_MAX = 64 * 1024;

/** Requests the upgrade from the app, if there is a place for one more such connection. `request.head.forwarded` are the headers. */
export function openUpgrade(
  parts: UpgradeParts,
  client: Client,
  request: { readonly target: string; readonly address: string; readonly head: Pick<Head, "forwarded"> },
  { requestId, shown, admission }: Extras,
  startedMs: number,
): void {
  const { origin, places, ongoing, onFault } = parts;
  const { req, res, socket, head } = client;
  if (socket.destroyed) return;
  const fail = (failed: Failed): void => answerFailure(parts.failing, res, failed, { requestId, shown, close: true });
  const { address } = request;
  if (!places.tryTake(address)) {
    fail({ failure: "busy", why: "" });
    return;
  }
  socket.once("close", () => places.release(address));
  const asked: ClientRequest = httpRequest({
    method: req.method,
    path: request.target,
    headers: [...request.head.forwarded, "Connection", "Upgrade", "Upgrade", "websocket"],
    // Without an agent's pool. Half open, because the end of the app's direction must not end the client's.
    createConnection: () => {
      const { headersMs: timeout } = parts;
      const appSocket = connect({ host: hostOf(origin), port: portOf(origin), allowHalfOpen: true, timeout });
      guardSocket(appSocket, onFault);
      return appSocket;
    },
    timeout: parts.headersMs,
    maxHeaderSize: ANSWER_HEAD_BYTES_MAX,
  });
  const breakOff = ({ error }: { error: unknown }): void => {
    onFault(error);
    asked.destroy();
    socket.destroy();
  };
  guardEmits(asked, breakOff);
  // As for the server: headers beyond the limit would be dropped silently.
  asked.maxHeadersCount = 0;
  const ongoingAsk: Ongoing = {
    slot: -1,
    startedMs,
    checkedMs: startedMs,
    admission,
    breakIfStalled() {},
    cut() {
      asked.destroy();
      socket.destroy();
    },
  };
  ongoing.add(ongoingAsk);
  let isAnswered = false;
  let hasTimedOut = false;

  // Only reading shows whether the client is still there. What it sends too early is kept, up to a bound.
  const early: Buffer[] = [head];
  let earlyBytes = head.length;
  const onEarly = (chunk: Buffer): void => {
    early.push(chunk);
    earlyBytes += chunk.length;
    if (earlyBytes > EARLY_BYTES_MAX) socket.pause();
  };
  const onClientGone = (): void => {
    stopWaiting();
    asked.destroy();
    socket.destroy();
  };
  const stopWaiting = (): void => {
    isAnswered = true;
    socket.off("data", onEarly).off("end", onClientGone).off("close", onClientGone);
    ongoing.remove(ongoingAsk);
  };
  socket.on("data", onEarly).on("end", onClientGone).on("close", onClientGone);

  asked.on("timeout", () => {
    hasTimedOut = true;
    asked.destroy(new Error("the app did not answer in time"));
  });
  asked.on("error", (error) => {
    if (isAnswered) return;
    stopWaiting();
    fail({ failure: hasTimedOut ? "timeout" : failureOf(error), why: error.message });
  });
  const interim = new InterimAnswers(res);
  asked.on("information", ({ statusCode, headers: received }) => interim.pass(statusCode, received));
  asked.on("response", (answer) => {
    stopWaiting();
    guardEmits(answer, breakOff);
    const head = passableHead(receivedHead(answer), { requestId, shown });
    if (head.kind === "unusable") {
      asked.destroy();
      fail({ failure: "unusable", why: head.why });
      return;
    }
    res.shouldKeepAlive = false;
    res.writeHead(answer.statusCode ?? 0, head.reason, head.headers);
    answer.on("error", () => breakOffAnswer(res));
    res.on("close", () => answer.destroy());
    answer.pipe(res, { end: false });
    // Node treats a reset as the end of a response that lasts until the connection ends.
    answer.on("end", () => (answer.socket.errored === null ? res.end() : breakOffAnswer(res)));
  });
  asked.on("upgrade", (answer, appSocket, appHead) => {
    stopWaiting();
    const head = passableHead(receivedHead(answer), { requestId, shown }, { isSwitching: true });
    const protocol = answer.headers.upgrade ?? "websocket";
    if (head.kind === "unusable" || protocol.trim().toLowerCase() !== "websocket") {
      appSocket.destroy();
      const why = head.kind === "unusable" ? head.why : "it switches to another protocol than was asked for";
      fail({ failure: "unusable", why });
      return;
    }
    const out = ["Connection", "Upgrade", "Upgrade", protocol, ...head.headers];
    res.detachSocket(socket as Socket);
    let text = `HTTP/1.1 101 ${head.reason ?? "Switching Protocols"}\r\n`;
    for (let i = 0; i < out.length; i += 2) text += `${out[i]}: ${out[i + 1]}\r\n`;
    socket.write(`${text}\r\n`, "latin1");
    if (appHead.length > 0) socket.write(appHead);
    if (earlyBytes > 0) appSocket.write(Buffer.concat(early));
    ongoing.add(new Tunnel(socket, appSocket, ongoing, { startedMs, admission }));
  });
  asked.end();
}

const receivedHead = ({ statusCode, statusMessage, headersDistinct }: IncomingMessage): ReceivedHead => ({
  status: statusCode ?? 0,
  reason: statusMessage,
  headers: headersDistinct,
});

const hostOf = (origin: URL): string => origin.hostname.replace(/^\[|\]$/g, "");
const portOf = (origin: URL): number => Number(origin.port || 80);
