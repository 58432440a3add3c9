import type { MessageParser } from "../../http/http1/message-parser.ts";

/*
 * Selects the simplest requests for the direct front to serve (decision 0028). Other requests are handed to Node and fastify, so that the
 * full HTTP rules are not implemented twice.
 */

/** Headers that the directly served procedures read. Other headers are ignored. */
export interface DirectHeaders {
  readonly authorization: string;
  readonly "content-type": string;
  readonly accept: string | undefined;
  readonly "user-agent": string | undefined;
  /** Value of `X-Forwarded-For`, which is read only if proxies are trusted. */
  readonly "x-forwarded-for": string | undefined;
}

export interface DirectHead {
  readonly headers: DirectHeaders;
  readonly bodyBytes: number;
}

/** Maximum body size of a direct request. The pipeline reads larger bodies only for authenticated senders (`read-body.ts`). */
export const DIRECT_BYTES_BOUND = 65_536;

const CONTENT_TYPES: ReadonlySet<string> = new Set([
  "application/json",
  "application/json; charset=utf-8",
  "application/json;charset=utf-8",
]);

/**
 * Maximum number of header names and values in a direct request. Requests with more are left to Node, which drops headers beyond its own
 * limit.
 */
const HEADERS_BOUND = 200;

const LENGTH = /^[1-9]\d{0,5}$/;

type Meaning = "host" | "authorization" | "content-type" | "content-length" | "accept" | "user-agent" | "unusual" | "";

const MEANINGS: Readonly<Record<string, Meaning>> = {
  host: "host",
  authorization: "authorization",
  "content-type": "content-type",
  "content-length": "content-length",
  accept: "accept",
  "user-agent": "user-agent",
  expect: "unusual",
  upgrade: "unusual",
  "transfer-encoding": "unusual",
  "content-encoding": "unusual",
  trailer: "unusual",
  "accept-version": "unusual",
};

/** Headers by name. The common spellings of each name are included, so that few names must be converted to lower case. */
const MEANING_OF = new Map<string, Meaning>(
  Object.entries(MEANINGS).flatMap(([name, meaning]) => [
    [name, meaning],
    [name.replaceAll(/\b[a-z]/g, (letter) => letter.toUpperCase()), meaning],
  ]),
);

const meaningOf = (name: string): Meaning => MEANING_OF.get(name) ?? MEANING_OF.get(name.toLowerCase()) ?? "";

const isConnection = (name: string): boolean => name.length === 10 && name.toLowerCase() === "connection";
const isForwarded = (name: string): boolean => name.length === 15 && name.toLowerCase() === "x-forwarded-for";

/**
 * Returns whether Node can give the connection back after this request: the request must keep the connection open, and Node must emit the
 * event `request` for it. Node does not do so for upgrades and for requests with `Expect`.
 */
export function mayAlternate({ version, isUpgrade, keepsAlive, headers }: MessageParser): boolean {
  if (version !== 11 || isUpgrade || !keepsAlive || headers.length > HEADERS_BOUND) return false;
  return !headers.some((name, at) => at % 2 === 0 && name.length === 6 && name.toLowerCase() === "expect");
}

/**
 * Reads the head that `parser` has completed; returns `undefined` if the request must not be served directly. With trusted proxies, accepts
 * one `X-Forwarded-For` line with one or more addresses.
 */
export function readDirectHead(
  { method, version, isUpgrade, keepsAlive, headers }: MessageParser,
  { trustsProxies }: { trustsProxies: boolean },
): DirectHead | undefined {
  if (method !== "POST" || version !== 11 || isUpgrade || !keepsAlive) return undefined;
  if (headers.length > HEADERS_BOUND) return undefined;
  let host: string | undefined;
  let length: string | undefined;
  let authorization: string | undefined;
  let contentType: string | undefined;
  let accept: string | undefined;
  let userAgent: string | undefined;
  let forwardedFor: string | undefined;
  for (let at = 0; at < headers.length; at += 2) {
    const name = headers[at] as string;
    const value = headers[at + 1] as string;
    // Hands a request with a repeated header to Node, which decides which of the values applies.
    switch (meaningOf(name)) {
      case "":
        if (isConnection(name) && value.toLowerCase() !== "keep-alive") return undefined;
        if (trustsProxies && isForwarded(name)) {
          if (forwardedFor !== undefined) return undefined;
          forwardedFor = value;
        }
        break;
      case "host":
        if (host !== undefined) return undefined;
        host = value;
        break;
      case "content-length":
        if (length !== undefined) return undefined;
        length = value;
        break;
      case "authorization":
        if (authorization !== undefined) return undefined;
        authorization = value;
        break;
      case "content-type":
        if (contentType !== undefined) return undefined;
        contentType = value;
        break;
      case "accept":
        if (accept !== undefined) return undefined;
        accept = value;
        break;
      case "user-agent":
        if (userAgent !== undefined) return undefined;
        userAgent = value;
        break;
      default:
        return undefined;
    }
  }
  if (host === undefined || authorization === undefined) return undefined;
  if (contentType === undefined || !CONTENT_TYPES.has(contentType)) return undefined;
  if (length === undefined || !LENGTH.test(length) || Number(length) > DIRECT_BYTES_BOUND) return undefined;
  return {
    headers: {
      authorization,
      "content-type": contentType,
      accept,
      "user-agent": userAgent,
      "x-forwarded-for": forwardedFor,
    },
    bodyBytes: Number(length),
  };
}
