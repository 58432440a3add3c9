import { type ClientHttp2Session, type ClientHttp2Stream, connect, constants } from "node:http2";
import type { Case, FuzzStream } from "./case.ts";
import { judgeAnswer } from "./play.ts";
import type { HttpResponse } from "./read-messages.ts";

/** How long a connection may be silent before its client gives up; longer while a response is pending, by what the gate waits for. */
const QUIET_MS = 250;
const OWED_MS = 15_000;

/** Plays a case over HTTP/2 against the gate at `port`. Returns what is wrong with what its client received; undefined when nothing is. Never throws. */
export async function playStreams(
  played: Case,
  streams: readonly FuzzStream[],
  port: number,
): Promise<string | undefined> {
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  const untilMs = performance.now() + OWED_MS;
  const heard = streams.map((stream) => new HeardStream(session, stream));
  if (played.ends === "destroy") setTimeout(() => session.destroy(), 5);
  try {
    let last = -1;
    for (;;) {
      await Promise.race([
        Promise.all(heard.map(({ closed }) => closed)),
        new Promise((resolve) => setTimeout(resolve, QUIET_MS)),
      ]);
      const complaint = judgeStreams(played, heard);
      const bytes = heard.reduce((sum, { text }) => sum + text.length, 0);
      const isOver = heard.every(({ isClosed }) => isClosed) || performance.now() > untilMs;
      if (isOver || (complaint === undefined && bytes === last)) return complaint;
      last = bytes;
    }
  } finally {
    session.destroy();
  }
}

function judgeStreams(played: Case, heard: readonly HeardStream[]): string | undefined {
  if (played.ends === "destroy") return undefined;
  const ids = new Set(heard.flatMap(({ given: { expected } }) => (expected === undefined ? [] : [expected.id])));
  // What an odd request breaks may be the connection.
  const hasOdd = heard.some(({ given }) => given.expected === undefined && given.resetAfter === undefined);
  for (const { given, response, isClosed } of heard) {
    if (given.expected === undefined || (hasOdd && isClosed && response === undefined)) continue;
    const complaint = judgeAnswer(played, ids, given.expected, response);
    if (complaint !== undefined) return `over HTTP/2: ${complaint}`;
  }
  return undefined;
}

/** One request, and what came of its answer. */
class HeardStream {
  readonly given: FuzzStream;
  readonly closed: Promise<void>;
  isClosed = false;
  text = "";
  #head: Record<string, unknown> | undefined;
  #stream: ClientHttp2Stream | undefined;
  #hasEnded = false;

  constructor(session: ClientHttp2Session, given: FuzzStream) {
    this.given = given;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise.then(() => {
      this.isClosed = true;
    });
    const { method, path, fields, body, hasTrailers } = given;
    try {
      const head = { ":method": method, ":path": path, ":authority": "a", ...Object.fromEntries(fields) };
      this.#stream = session.request(head, { endStream: body === undefined, waitForTrailers: hasTrailers });
    } catch {
      // Node does not send what is no request.
      resolve();
      return;
    }
    const stream = this.#stream;
    stream.on("response", (received) => {
      this.#head = received;
    });
    stream.on("data", (bytes: Buffer) => {
      this.text += bytes.toString("latin1");
    });
    stream.on("end", () => {
      this.#hasEnded = true;
    });
    stream.on("wantTrailers", () => stream.sendTrailers({ "x-postern-key-id": "forged" }));
    stream.on("error", () => {});
    stream.on("close", resolve);
    void send(stream, given);
  }

  /** As far as it has come. */
  get response(): HttpResponse | undefined {
    if (this.#head === undefined) return undefined;
    const fields = Object.entries(this.#head).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one) => [name, String(one)] as const),
    );
    const isComplete = this.#hasEnded && this.#stream?.rstCode === constants.NGHTTP2_NO_ERROR && !this.#stream.aborted;
    return { firstLine: "", fields, status: Number(this.#head[":status"]), body: this.text, isComplete };
  }
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
