import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";

/*
 * Encodes a problem for a gRPC client as a Trailers-Only response: status 200 and `grpc-status` in one head that ends the stream. With any
 * other HTTP status, clients would derive the gRPC code from it. A rate limit would become UNAVAILABLE, which they retry immediately.
 */

/** Codes of `google.rpc.Code`. */
const DEADLINE_EXCEEDED = 4;
const PERMISSION_DENIED = 7;
const RESOURCE_EXHAUSTED = 8;
const INTERNAL = 13;
const UNAVAILABLE = 14;
const UNAUTHENTICATED = 16;

const CODES: ReadonlyMap<number, number> = new Map([
  [401, UNAUTHENTICATED],
  [403, PERMISSION_DENIED],
  // The app may have processed the request, so the code must not suggest that the client can safely retry.
  [408, DEADLINE_EXCEEDED],
  [504, DEADLINE_EXCEEDED],
  [429, RESOURCE_EXHAUSTED],
  [502, UNAVAILABLE],
  [503, UNAVAILABLE],
]);

export const isGrpc = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^application\/grpc(?:$|[+;\s])/i.test(contentType);

/** Returns the additional headers of a problem for gRPC clients, as alternating names and values. */
export function grpcStatus({ kind, detail }: { readonly kind: ErrorKind; readonly detail: string }): string[] {
  const code = CODES.get(ERROR_KINDS[kind].status) ?? INTERNAL;
  return ["Content-Type", "application/grpc", "Grpc-Status", String(code), "Grpc-Message", percentEncoded(detail)];
}

/** Encodes a gRPC message: percent-encodes all characters except printable ASCII other than `%`. */
const percentEncoded = (text: string): string =>
  text.replaceAll(/[^\x20-\x24\x26-\x7e]+/gu, (part) =>
    [...Buffer.from(part)].map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`).join(""),
  );
