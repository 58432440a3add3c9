import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { FastifyRequest } from "fastify";
import { PublicError } from "../../core/errors.ts";
import { type Release, WorkspaceLimiter } from "../../edge/workspace-limiter.ts";
import { hasMoreValues, tooManyValues } from "./body.ts";

/*
 * Reads the bytes of a body. A large body is buffered only if its sender has a root key, so that unauthenticated clients cannot fill the
 * memory. Only a few large bodies are buffered concurrently, because the parsed form takes several times their bytes. A large body waits for
 * its slot after its first 256 KiB, so that waiting bodies are small.
 *
 *   small ──more bytes, or more values──► waiting for authentication and a slot ──► large ──► served: `request.release` releases the slot
 *
 * The bytes of unauthenticated clients are counted anyway, because a body that is too large is rejected first (api-v2.md section 2).
 */

export const BODY_BYTES_MAX = 10_485_760;

/**
 * Maximum number of bytes of a rejected body that are read and discarded. Closing a connection while its client is still writing resets it,
 * so a client that writes everything before it reads would lose the response.
 */
const DISCARDED_BYTES_MAX = 67_108_864;
const DISCARDED_MS_MAX = 20_000;

/**
 * Maximum size of a small body; its number of values is limited as well. A small body is buffered for any sender, and parsed before the
 * root key is looked up.
 */
export const UNJUDGED_BYTES_MAX = 262_144;
export const UNJUDGED_VALUES_MAX = 2_500;

/** Limits on the number of large bodies that are read or processed concurrently. */
const LARGE_BODIES = { total: 4, perWorkspace: 2, waitersMax: 32, waitMsMax: 15_000 };
/** Timeout for reading a large body once it has a slot, so that slow senders do not occupy the slots. */
const LARGE_BODY_MS_MAX = 30_000;

/**
 * Resolves to the sender's workspace if its root key is valid, or to `undefined` for an unknown path. Rejects if the root key is not valid.
 */
export type Checker = (request: FastifyRequest) => Promise<string | undefined>;

type Done = (error: Error | null, body?: Buffer) => void;

/**
 * Creates a content type parser for fastify that returns the complete body. The parser fails with PublicError 413 if the body is too long,
 * with the error of `judge` if the sender of a large body is rejected, with 503 `server_busy` if no slot becomes free, or with the
 * connection's error.
 */
export function createBodyReader(judge: Checker) {
  const limiter = new WorkspaceLimiter({
    ...LARGE_BODIES,
    busy: "The server works on as many large bodies as it can at once, or as many of this workspace",
  });

  return (request: FastifyRequest, payload: IncomingMessage, done: Done): void => {
    const chunks: Buffer[] = [];
    let length = 0;
    let isLarge = false;
    let isKept = true;
    let isOver = false;
    let refusal: Error | undefined;
    let timer: NodeJS.Timeout | undefined;

    function end(error: Error | undefined): void {
      if (isOver) return;
      isOver = true;
      payload.off("data", onData).off("end", onEnd).off("error", onError);
      clearTimeout(timer);
      if (error === undefined) done(null, body());
      else {
        request.release?.();
        done(error);
      }
    }

    function body(): Buffer {
      if (chunks.length !== 1) chunks.splice(0, chunks.length, Buffer.concat(chunks));
      return chunks[0] as Buffer;
    }

    function refuseNow(error: PublicError): void {
      request.discarded = discard(payload);
      end(error);
    }

    /** Waits for authentication and a slot. Never rejects. */
    async function becomeLarge(): Promise<void> {
      isLarge = true;
      try {
        if (request.routeOptions.config.isOpen === true) {
          throw length > UNJUDGED_BYTES_MAX ? tooLarge(UNJUDGED_BYTES_MAX) : tooManyValues(UNJUDGED_VALUES_MAX);
        }
        const workspaceId = await judge(request);
        if (workspaceId !== undefined) {
          const release = await limiter.acquire(workspaceId);
          // Releases the slot if the connection failed while the body waited, because no other code does so in that case.
          if (isOver) release();
          else request.release = release;
          return;
        }
      } catch (error) {
        refusal = error as Error;
      }
      isKept = false;
      chunks.length = 0;
    }

    function onData(chunk: Buffer): void {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) {
        refuseNow(tooLarge(BODY_BYTES_MAX));
        return;
      }
      if (isKept) chunks.push(chunk);
      if (isLarge || length <= UNJUDGED_BYTES_MAX) return;
      payload.pause();
      void becomeLarge().then(() => {
        if (isOver) return;
        timer = setTimeout(() => refuseNow(tooSlow()), LARGE_BODY_MS_MAX);
        payload.resume();
      });
    }

    function onEnd(): void {
      if (isLarge || !hasMoreValues(body(), UNJUDGED_VALUES_MAX)) end(refusal);
      else void becomeLarge().then(() => end(refusal));
    }

    const onError = (error: Error & { statusCode?: number }): void => {
      error.statusCode ??= 400;
      end(error);
    };
    if (Number(request.headers["content-length"]) > BODY_BYTES_MAX) refuseNow(tooLarge(BODY_BYTES_MAX));
    else payload.on("data", onData).on("end", onEnd).on("error", onError);
  };
}

/** Resolves when the body has ended or the maximum number of bytes has been discarded. */
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

/** Returns the error 413. Sending it closes the connection, because the body may be longer than the part that is discarded. */
export const tooLarge = (bytesMax: number): PublicError =>
  new PublicError("request_body_too_large", `The body is larger than ${bytesMax.toLocaleString("en")} bytes.`, {
    headers: { Connection: "close" },
  });

const tooSlow = (): PublicError =>
  new PublicError("request_timeout", `A large body did not arrive within ${LARGE_BODY_MS_MAX / 1000} seconds.`, {
    headers: { Connection: "close" },
  });

/** Sends the complete response immediately, but ends the response and its connection only after the rest of the request has been read. */
export function answerAhead(response: string, discarded: Promise<void>): Readable {
  return Readable.from(
    (async function* () {
      yield Buffer.from(response);
      await discarded;
    })(),
    { objectMode: false },
  );
}

declare module "fastify" {
  interface FastifyRequest {
    /** Promise that resolves when the rest of a rejected body has been read; `undefined` if no body was rejected. */
    discarded: Promise<void> | undefined;
    /** Releases the concurrency slot that a large body occupies. Called when the request's handler has ended. */
    release: Release | undefined;
  }
}
