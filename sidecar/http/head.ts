import { isHost } from "../../core/policies/check-path.ts";
import { isIdentityHeader } from "../../core/policies/identity-headers.ts";
import type { CredentialLocation } from "../../core/policies/policy.ts";
import { HOP_BY_HOP, namedInConnection } from "./hop-by-hop.ts";
import { rememberName } from "./known-names.ts";

/*
 * Reads the head of a request in one pass: checks that its framing is unambiguous, finds its credential, and selects the headers for the
 * app. Clients send few different names, so the meaning of each is cached.
 */

/** Meaning of a header; from `CREDENTIAL` on, the number also identifies the policy's header. */
const PASS = 0;
const DROP = 1;
const HOST = 2;
const CONTENT_LENGTH = 3;
const TRANSFER_ENCODING = 4;
const CONNECTION = 5;
const FORWARDED_FOR = 6;
const CREDENTIAL = 16;

/** The gate answers `Expect` itself. It does not forward request trailers, so it removes their announcement too. */
const SPECIAL: ReadonlyMap<string, number> = new Map([
  ...[...HOP_BY_HOP].map((name) => [name, DROP] as const),
  ["expect", DROP],
  ["host", HOST],
  ["content-length", CONTENT_LENGTH],
  ["transfer-encoding", TRANSFER_ENCODING],
  ["connection", CONNECTION],
  ["x-forwarded-for", FORWARDED_FOR],
]);

/**
 * Maximum headers. Node's own server, and others, silently drop headers beyond 1,000 or 2,000; the gate's own headers come last and must
 * not be dropped.
 */
const HEADERS_MAX = 500;

export interface Head {
  /** Alternating names and values for the app: without credentials, identity headers and hop-by-hop headers. */
  readonly forwarded: string[];
  /** Why the framing is ambiguous, which closes the connection; `undefined` if it is not. */
  readonly malformed: string | undefined;
  readonly hasBody: boolean;
  /** Value of Content-Length; `undefined` if absent. */
  readonly bodyLength: number | undefined;
  /** Credential in the headers: the one of the first location in the policy's order. */
  readonly credential: string | undefined;
  /** Index of the location of `credential` in the policy's order. */
  readonly credentialAt: number;
  /** Whether a credential header was sent twice, which makes the credential ambiguous. */
  readonly duplicateCredential: boolean;
  readonly forwardedFor: string | undefined;
}

/** A header of the policy's locations, with its schemes (lower case; `undefined` takes the complete value). */
interface CredentialHeader {
  readonly schemes: ReadonlyArray<{ readonly scheme: string | undefined; readonly at: number }>;
}

export type ReadHead = (rawHeaders: readonly string[], httpVersion: string) => Head;

/** Compiles the head reader for a policy's credential locations. Without locations, no header is a credential. */
export function compileHeadReader(locations: readonly CredentialLocation[]): ReadHead {
  const headers: Array<{ schemes: Array<{ scheme: string | undefined; at: number }> }> = [];
  const credentialNames = new Map<string, number>();
  for (const [at, location] of locations.entries()) {
    if (location.in !== "header") continue;
    const name = location.name.toLowerCase();
    let slot = credentialNames.get(name);
    if (slot === undefined) {
      slot = headers.push({ schemes: [] }) - 1;
      credentialNames.set(name, slot);
    }
    headers[slot]?.schemes.push({ scheme: location.scheme?.toLowerCase(), at });
  }
  const known = new Map<string, number>();
  /** The last valid Host; requests name few different ones. */
  let knownHost = "";

  function classify(name: string): number {
    const lower = name.toLowerCase();
    const slot = credentialNames.get(lower);
    const meaning =
      SPECIAL.get(lower) ?? (slot !== undefined ? CREDENTIAL + slot : isIdentityHeader(lower) ? DROP : PASS);
    rememberName(known, name, meaning);
    return meaning;
  }

  return (raw, httpVersion) => {
    let forwarded: string[] = [];
    let malformed: string | undefined;
    let hosts = 0;
    let lengths = 0;
    let length = "";
    let codings = 0;
    let connection: string | undefined;
    let forwardedFor: string | undefined;
    let credential: string | undefined;
    let credentialAt = Number.MAX_SAFE_INTEGER;
    let duplicateCredential = false;
    let seenSlots = 0;

    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i] as string;
      const value = raw[i + 1] as string;
      const meaning = known.get(name) ?? classify(name);
      if (meaning === PASS) {
        forwarded.push(name, value);
      } else if (meaning >= CREDENTIAL) {
        const bit = 1 << (meaning - CREDENTIAL);
        if ((seenSlots & bit) !== 0) duplicateCredential = true;
        seenSlots |= bit;
        const found = findInHeader(headers[meaning - CREDENTIAL], value);
        if (found === undefined) forwarded.push(name, value);
        else if (found.at < credentialAt) {
          credential = found.credential;
          credentialAt = found.at;
        }
      } else if (meaning === HOST) {
        hosts += 1;
        if (value !== knownHost) {
          if (isHost(value)) knownHost = value;
          else malformed = "The Host header names no host.";
        }
        forwarded.push("host", value);
      } else if (meaning === CONTENT_LENGTH) {
        lengths += 1;
        length = value;
        forwarded.push("content-length", value);
      } else if (meaning === TRANSFER_ENCODING) {
        codings += 1;
        if (value.toLowerCase() !== "chunked") malformed = "The only transfer coding understood is `chunked`.";
      } else if (meaning === CONNECTION) {
        connection = connection === undefined ? value : `${connection},${value}`;
      } else if (meaning === FORWARDED_FOR) {
        forwardedFor = forwardedFor === undefined ? value : `${forwardedFor},${value}`;
        forwarded.push(name, value);
      }
    }

    if (raw.length > 2 * HEADERS_MAX) malformed = `There are more than ${HEADERS_MAX} headers.`;
    else if (hosts > 1) malformed = "There is more than one Host header.";
    else if (hosts === 0 && httpVersion !== "1.0") malformed = "There is no Host header.";
    else if (lengths > 1) malformed = "There is more than one Content-Length header.";
    else if (codings > 1) malformed = "There is more than one Transfer-Encoding header.";
    else if (codings > 0 && lengths > 0) malformed = "There are both Content-Length and Transfer-Encoding.";
    // RFC 9112, 6.1: HTTP/1.0 has no transfer codings, so the sender's framing cannot be trusted.
    else if (codings > 0 && httpVersion === "1.0") malformed = "HTTP/1.0 has no transfer codings.";

    const named = namedInConnection(connection);
    if (named !== undefined) forwarded = withoutNamed(forwarded, named);
    const hasBody = codings > 0 || (lengths > 0 && length !== "0");
    // The parser accepts only digits.
    const bodyLength = lengths > 0 ? Number(length) : undefined;
    return { forwarded, malformed, hasBody, bodyLength, credential, credentialAt, duplicateCredential, forwardedFor };
  };
}

/** A header is the policy's credential only with the right scheme; `Authorization: Basic …` may be for the app. */
function findInHeader(
  header: CredentialHeader | undefined,
  value: string,
): { credential: string; at: number } | undefined {
  if (header === undefined) return undefined;
  for (const { scheme, at } of header.schemes) {
    if (scheme === undefined) return { credential: value, at };
    const { length } = scheme;
    // A space, a tab or the end of the value must follow: `Bearerx` is another scheme.
    const next = value.charCodeAt(length);
    if (value.length < length || !(Number.isNaN(next) || next === 32 || next === 9)) continue;
    if (value.slice(0, length).toLowerCase() === scheme) return { credential: value.slice(length).trim(), at };
  }
  return undefined;
}

function withoutNamed(forwarded: readonly string[], named: ReadonlySet<string>): string[] {
  const kept: string[] = [];
  for (let i = 0; i < forwarded.length; i += 2) {
    const name = forwarded[i] as string;
    if (!named.has(name.toLowerCase())) kept.push(name, forwarded[i + 1] as string);
  }
  return kept;
}
