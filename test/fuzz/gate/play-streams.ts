import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { Case, FuzzStream } from "./case.ts";
import { judgeAnswer } from "./play.ts";
import type { Answer } from "./read-messages.ts";

/** For each stream; longer than what the gate waits for. */
const OWED_MS = 15_000;

/** Plays a case over HTTP/2 against the gate at `port`. Returns what is wrong with what its client received; undefined when nothing is. Never throws. */
export async function playStreams(
  played: Case,
  streams: readonly FuzzStream[],
  port: number,
): Promise<string | undefined> {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  const last = setTimeout(() => session.destroy(), OWED_MS);
  try {
    const heard = streams.map((stream) => hear(session, stream));
    if (played.ends === "destroy") setTimeout(() => session.destroy(), 5);
    const answers = await Promise.all(heard);
    // What an odd request breaks may be the connection, which is then not theirs.
    if (played.ends === "destroy") return undefined;
    const ids = new Set(streams.flatMap(({ expected }) => (expected === undefined ? [] : [expected.id])));
    const hasOdd = streams.some(({ expected, resetAfter }) => expected === undefined && resetAfter === undefined);
    for (const [at, { expected }] of streams.entries()) {
      const answer = answers[at];
      if (expected === undefined || (hasOdd && answer === undefined)) continue;
      const complaint = judgeAnswer(played, ids, expected, answer);
      if (complaint !== undefined) return `over HTTP/2: ${complaint}`;
    }
    return undefined;
  } finally {
    clearTimeout(last);
    session.destroy();
  }
}

/** Sends a request, and resolves with its answer when its stream has closed; with undefined when there was none. */
async function hear(session: ClientHttp2Session, given: FuzzStream): Promise<Answer | undefined> {
  const { method, path, fields, body, hasTrailers } = given;
  const { promise, resolve } = Promise.withResolvers<void>();
  let stream: ClientHttp2Stream;
  try {
    const head = { ":method": method, ":path": path, ":authority": "a", ...Object.fromEntries(fields) };
    stream = session.request(head, { endStream: body === undefined, waitForTrailers: hasTrailers });
  } catch {
    // Node does not send what is no request.
    return undefined;
  }
  let head: Record<string, unknown> | undefined;
  let text = "";
  let hasEnded = false;
  stream.on("response", (received) => {
    head = received;
  });
  stream.on("data", (bytes: Buffer) => {
    text += bytes.toString("latin1");
  });
  stream.on("end", () => {
    hasEnded = true;
  });
  stream.on("wantTrailers", () => stream.sendTrailers({ "x-postern-key-id": "forged" }));
  stream.on("error", () => {});
  stream.on("close", resolve);
  await send(stream, given);
  await promise;
  if (head === undefined) return undefined;
  const received = Object.entries(head).flatMap(([name, value]) =>
    (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)] as const),
  );
  const isWhole = hasEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR && !stream.aborted;
  return { firstLine: "", fields: received, status: Number(head[":status"]), body: text, isWhole };
}

async function send(stream: ClientHttp2Stream, { body = [], resetAfter }: FuzzStream): Promise<void> {
  for (const [at, piece] of body.entries()) {
    if (at === resetAfter) break;
    if (stream.destroyed || stream.writableEnded) return;
    stream.write(piece, "latin1");
    await new Promise((resolve) => (at % 2 === 0 ? setImmediate(resolve) : setTimeout(resolve, 2)));
  }
  if (resetAfter !== undefined) stream.close(constants.NGHTTP2_CANCEL);
  else if (!stream.destroyed && !stream.writableEnded) stream.end();
}
