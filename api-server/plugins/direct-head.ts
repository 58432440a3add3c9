import type { MessageParser } from "../../http1/message-parser.ts";

/*
 * Which requests the direct front serves (decision 0028): the plainest ones. What is unusual in any way is left to Node and fastify, which
 * answered all requests before, so that no rule of theirs is written twice.
 */

/** The headers that the directly served procedures look at. Another may be there, and means nothing to them. */
export interface DirectHeaders {
  readonly authorization: string;
  readonly "content-type": string;
  readonly accept: string | undefined;
  readonly "user-agent": string | undefined;
  /** Only where proxies are trusted. */
  readonly "x-forwarded-for": string | undefined;
}

export interface DirectHead {
  readonly headers: DirectHeaders;
  readonly bodyBytes: number;
}

/** Larger bodies are read as their senders are known (`read-body.ts`). */
export const DIRECT_BYTES_BOUND = 65_536;

const CONTENT_TYPES: ReadonlySet<string> = new Set([
  "application/json",
  "application/json; charset=utf-8",
  "application/json;charset=utf-8",
]);

/** Names and values. Of very many Node drops the last ones. */
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

/** Names as clients write them, so that few are brought into lower case. */
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
 * Reads the head that `parser` has completed; undefined when the request is not to be served directly. Where proxies are trusted, one
 * `X-Forwarded-For` may be there, as one proxy or several in a line write it.
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
    // Of a header that is there twice it is Node that knows which one counts.
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
