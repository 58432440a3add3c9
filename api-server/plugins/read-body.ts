import type { IncomingMessage } from "node:http";
import type { FastifyRequest } from "fastify";
import { PublicError } from "../../core/errors.ts";

/*
 * Takes in the bytes of a body. A larger one is kept only if its sender has a root key: nobody else can make the server hold
 * megabytes. What a stranger sends is counted all the same, for a body that is too large is refused before anything else
 * (api/v2 section 2).
 */

const BODY_BYTES_MAX = 10_485_760;

/** So much is kept of anybody's body. One up to this size is also parsed before the root key is looked up. */
export const UNJUDGED_BYTES_MAX = 262_144;

/** Rejects when the sender has no root key that may be used now. */
export type Judge = (request: FastifyRequest) => Promise<void>;

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Makes a content type parser of fastify, which gives the whole body. Fails with PublicError 413, with what the judge said of
 * the sender of a larger body, or with whatever broke the connection.
 */
export function createBodyReader(judge: Judge) {
  return (request: FastifyRequest, payload: IncomingMessage, done: Done): void => {
    if (Number(request.headers["content-length"]) > BODY_BYTES_MAX) {
      done(tooLarge());
      return;
    }
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

    function onData(chunk: Buffer): void {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) {
        end(tooLarge());
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
    payload.on("data", onData).on("end", onEnd).on("error", onError);
  };
}

/** The rest of it is not read, so that no other request can come over the connection. */
const tooLarge = (): PublicError =>
  new PublicError("request_body_too_large", "The body is larger than 10,485,760 bytes.", {
    headers: { Connection: "close" },
  });
