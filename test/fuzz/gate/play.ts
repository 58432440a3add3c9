import { connect, type Socket } from "node:net";
import type { Case, ExpectedRequest } from "./case.ts";
import { type HttpResponse, Malformed, type Responses, readResponses, valuesOf } from "./read-messages.ts";

/** How long a connection may be silent before its client gives up; longer on a busy machine, while a response is pending. */
const QUIET_MS = 250;
const OWED_MS = 10_000;
const LAST_MS = 30_000;

export interface Heard {
  readonly text: string;
  /** The other side closed the connection normally; otherwise it was reset, or we gave up. */
  readonly hasEnded: boolean;
}

/** Plays a case against the gate at `port`, and returns what its client received. Never throws. */
export async function play(played: Case, port: number): Promise<Heard> {
  const { client, ends, tunnel } = played;
  const socket = connect({ host: "127.0.0.1", port, allowHalfOpen: true });
  const pieces: string[] = [];
  let hasEnded = false;
  let sentTunnel = false;
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket.setNoDelay(true);
  const owedUntilMs = performance.now() + OWED_MS;
  socket.setTimeout(QUIET_MS, () => {
    const isOwed = judge(played, { text: pieces.join(""), hasEnded }) !== undefined;
    if (!isOwed || performance.now() > owedUntilMs) socket.destroy();
    else socket.setTimeout(QUIET_MS);
  });
  socket.on("error", () => {});
  // A connection that never becomes silent must end too.
  const last = setTimeout(() => socket.destroy(), LAST_MS);
  socket.on("close", () => {
    clearTimeout(last);
    resolve();
  });
  socket.on("end", () => {
    hasEnded = true;
    socket.end();
  });
  socket.on("data", (chunk: Buffer) => {
    pieces.push(chunk.toString("latin1"));
    if (tunnel === undefined || sentTunnel || !pieces.join("").includes("\r\n\r\n")) return;
    sentTunnel = true;
    socket.end(tunnel, "latin1");
  });
  await send(socket, client);
  if (ends === "half-close") socket.end();
  if (ends === "destroy") socket.destroy();
  if (ends === "reset") socket.resetAndDestroy();
  await closed;
  return { text: pieces.join(""), hasEnded };
}

async function send(socket: Socket, pieces: readonly string[]): Promise<void> {
  for (const [at, piece] of pieces.entries()) {
    if (socket.destroyed) return;
    socket.write(piece, "latin1");
    await new Promise((resolve) => (at % 2 === 0 ? setImmediate(resolve) : setTimeout(resolve, 2)));
  }
}

/** Returns what is wrong with what the client received; undefined when nothing is. */
export function judge(played: Case, heard: Heard): string | undefined {
  const methods = played.requests?.map(({ method }) => method) ?? [];
  let responses: Responses;
  try {
    responses = readResponses(heard.text, methods);
  } catch (error) {
    if (error instanceof Malformed) return `the gate answered what is not HTTP/1.1: ${error.message}`;
    throw error;
  }
  if (responses.final.some((response) => valuesOf(response, "x-saw").includes("stray"))) {
    return "a request got the answer that was stray bytes behind another's";
  }
  if (played.tunnel !== undefined) {
    return responses.tunnel === played.tunnel
      ? undefined
      : "what was sent through the upgraded connection did not come back";
  }
  if (played.requests !== undefined) return judgeSound(played, played.requests, responses.final);
  const sent = played.client.join("");
  // A request has its version at the end of its first line. One more response may say that the rest is not a request.
  const requestsMax = (sent.match(/HTTP\//gi)?.length ?? 0) + 1;
  if (responses.final.length > requestsMax)
    return `${responses.final.length} answers to at most ${requestsMax} requests`;
  return undefined;
}

function judgeSound(
  played: Case,
  requests: readonly ExpectedRequest[],
  responses: readonly HttpResponse[],
): string | undefined {
  if (responses.length > requests.length) return `${responses.length} answers to ${requests.length} requests`;
  const ids = new Set(requests.map(({ id }) => id));
  for (const [at, request] of requests.entries()) {
    const complaint = judgeAnswer(played, ids, request, responses[at]);
    if (complaint !== undefined) return complaint;
    // A response that the app breaks off or gets wrong may end the connection, and everything that was still to come on it.
    if (responses[at]?.isComplete !== true) return undefined;
  }
  return undefined;
}

/** Returns what is wrong with the answer to a valid request. `ids` are those of all requests on its connection. */
export function judgeAnswer(
  { app, responses: plans }: Case,
  ids: ReadonlySet<string>,
  { id, method, status, body }: ExpectedRequest,
  response: HttpResponse | undefined,
): string | undefined {
  const plan = app === "raw" ? plans[id] : undefined;
  const expect = status === undefined && plan !== undefined ? plan.expect : "whole";
  if (response === undefined) return expect === "whole" ? `no answer to request ${id}` : undefined;
  const saw = valuesOf(response, "x-saw");
  // Odd responses are mutated, including the id that they repeat: there only another request's own id is a proof.
  const isAnothers = (one: string): boolean => one !== id && (expect !== "any" || ids.has(one));
  if (saw.some(isAnothers)) return `request ${id} got the answer to ${saw.join()}`;
  if (expect === "any") return undefined;
  const isOfApp = saw.length > 0;
  // The places at the app are few on purpose, and odd cases hold them.
  const isBusy = method === "HEAD" || response.body.includes("/errors/upstream_busy");
  if (!isOfApp && response.status === 503 && isBusy) return undefined;
  if (expect === "cut") {
    if (isOfApp && response.isComplete) return `the answer to ${id} was broken off, and looks whole`;
    if (!isOfApp && response.status !== 502) return `${response.status} for ${id}, whose answer was broken off`;
    return undefined;
  }
  if (!response.isComplete) return `the answer to ${id} was broken off`;
  const expected = status ?? plan?.status ?? 200;
  if (response.status !== expected) return `${response.status} instead of ${expected} for ${id}`;
  if (status === undefined && method !== "HEAD" && response.body !== (plan?.body ?? body)) {
    return `the body of the answer to ${id} is not what the app sent`;
  }
  return undefined;
}
