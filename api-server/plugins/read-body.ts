import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { PublicError } from "../../core/errors.ts";

/*
 * Reads the bytes of a body. A larger one is kept only if its sender has a root key, so that no one else can make the server hold
 * megabytes. A stranger's bytes are counted anyway, because a body that is too large is refused before anything else
 * (api-v2.md section 2).
 */

export const BODY_BYTES_MAX = 10_485_760;

/**
 * How much of a refused body is read and discarded. A connection that is closed while its client
 * writes is reset, and a client that writes everything before it reads would lose the response.
 */
const DISCARDED_BYTES_MAX = 67_108_864;
const DISCARDED_MS_MAX = 20_000;

/** A body up to this size is kept for every sender, and parsed before the root key is looked up. */
export const UNJUDGED_BYTES_MAX = 262_144;

/** Rejects when the sender has no valid root key. */
export type Judge = (request: FastifyRequest) => Promise<void>;

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Makes a content type parser for fastify, which returns the whole body. Fails with PublicError 413, with the judge's error for
 * the sender of a larger body, or with the error of the connection.
 */
export function createBodyReader(judge: Judge) {
  return (request: FastifyRequest, payload: IncomingMessage, done: Done): void => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isJudged = false;
    let refusal: Error | undefined;

    function end(error: Error | undefined): void {
      payload.off("data", onData).off("end", onEnd).off("error", onError);
      const [first] = chunks;
      if (error !== undefined) done(error);
      else done(null, first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, length));
    }

    function refuse(error: Error): void {
      refusal = error;
      chunks.length = 0;
    }

    function refuseLength(): void {
      request.discarded = discard(payload);
      end(tooLarge(BODY_BYTES_MAX));
    }

    function onData(chunk: Buffer): void {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) {
        refuseLength();
        return;
      }
      if (refusal === undefined) chunks.push(chunk);
      if (isJudged || length <= UNJUDGED_BYTES_MAX) return;
      isJudged = true;
      payload.pause();
      judge(request)
        .catch(refuse)
        .finally(() => payload.resume());
    }

    const onEnd = (): void => end(refusal);
    const onError = (error: Error & { statusCode?: number }): void => {
      error.statusCode ??= 400;
      end(error);
    };
    if (Number(request.headers["content-length"]) > BODY_BYTES_MAX) refuseLength();
    else payload.on("data", onData).on("end", onEnd).on("error", onError);
  };
}

/** Resolves when the body has ended, or the most that is discarded has been read. */
function discard(payload: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let bytes = 0;
  const timer = setTimeout(resolve, DISCARDED_MS_MAX);
  payload
    .on("data", (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > DISCARDED_BYTES_MAX) resolve();
    })
    .on("error", () => resolve())
    .on("close", resolve)
    .on("end", resolve)
    .resume();
  return promise.finally(() => {
    clearTimeout(timer);
    payload.pause();
  });
}

/** Later requests on the connection are ignored, because the body may be longer than what is read of it. */
export const tooLarge = (bytesMax: number): PublicError =>
  new PublicError("request_body_too_large", `The body is larger than ${bytesMax.toLocaleString("en")} bytes.`, {
    headers: { Connection: "close" },
  });

/** Sends a whole response at once, and ends it and its connection when the rest of the request has been read. */
export function answerAhead(answer: string, discarded: Promise<void>): Readable {
  return Readable.from(
    (async function* () {
      yield Buffer.from(answer);
      await discarded;
    })(),
    { objectMode: false },
  );
}

declare module "fastify" {
  interface FastifyRequest {
    /** Set while the rest of a refused body is read; resolves when that is over. */
    discarded: Promise<void> | undefined;
  }
}
