import { isHost } from "../../core/policies/check-path.ts";
import { HOP_BY_HOP, namedInConnection } from "../../core/policies/hop-by-hop.ts";
import { isIdentityHeader } from "../../core/policies/identity-headers.ts";
import { hostNameOf } from "../../core/policies/match-host.ts";
import type { RuleMatcher } from "../../core/policies/match-rule.ts";
import type { CredentialLocation } from "../../core/policies/policy.ts";
import { asCgiVariable } from "../../core/policies/rule-headers.ts";
import { rememberName } from "./known-names.ts";

/*
 * Reads the head of a request in one pass: checks that its framing is unambiguous, finds its credential, and selects the headers for the
 * app. The meaning of each header name is cached, because clients send few different names.
 */

/** Meanings of a header. Numbers from `CREDENTIAL` on also identify one of the policy's credential headers. */
const PASS = 0;
const DROP = 1;
const HOST = 2;
const CONTENT_LENGTH = 3;
const TRANSFER_ENCODING = 4;
const CONNECTION = 5;
const FORWARDED_FOR = 6;
/**
 * A header that an app could confuse with a header that rules match: CGI servers replace all characters except letters and digits with `_`.
 */
const ALIAS = 7;
const CREDENTIAL = 16;
/** Numbers from `NAMED` on identify both a meaning below `NAMED` and a header that the policy's rules match. */
const NAMED = 256;

/**
 * Headers with a special meaning. `Expect` is dropped because the gate handles it, and `Trailer` because the gate does not forward request
 * trailers.
 */
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
 * Maximum number of headers. Some servers, such as Node's, silently drop headers beyond 1,000 or 2,000. They would drop the gate's own
 * headers first, because these come last.
 */
const HEADERS_MAX = 500;

export interface Head {
  /** Headers for the app, as alternating names and values, without credentials, identity headers and hop-by-hop headers. */
  readonly forwarded: string[];
  /** Reason why the framing is ambiguous and the connection is closed; `undefined` if the framing is unambiguous. */
  readonly malformed: string | undefined;
  readonly hasBody: boolean;
  /** Value of Content-Length; `undefined` if absent. */
  readonly bodyLength: number | undefined;
  /** Credential found in the headers. If several headers contain one, it is the first in the policy's order of locations. */
  readonly credential: string | undefined;
  /** Index of the credential's location in the policy's order. */
  readonly credentialAt: number;
  /** Whether a credential header occurs twice, which makes the credential ambiguous. */
  readonly duplicateCredential: boolean;
  readonly forwardedFor: string | undefined;
  /** Host in lower case, without a port; empty if absent. */
  readonly host: string;
  /** Values of the headers that the policy's rules match, in the order of `RuleMatcher.headerNames`. Repeated headers are joined. */
  readonly ruleHeaders: readonly (string | undefined)[];
  /**
   * Header that a rule matches but whose value apps could read differently, because it occurs more than once, has an ambiguous spelling, or
   * is removed by `Connection`.
   */
  readonly ambiguousHeader: string | undefined;
}

/**
 * A header in which the policy looks for keys, with the lower-case schemes to look for (such as `bearer`). The scheme `undefined` means
 * that the complete value is the key.
 */
interface CredentialHeader {
  readonly schemes: ReadonlyArray<{ readonly scheme: string | undefined; readonly at: number }>;
}

export type ReadHead = (rawHeaders: readonly string[], httpVersion: string) => Head;

const NO_RULES: Pick<RuleMatcher, "headerNames" | "matchedHeaders"> = { headerNames: [], matchedHeaders: new Set() };
const NO_HEADERS: readonly (string | undefined)[] = [];

/**
 * Compiles the reader of heads from the policy's credential locations and the headers that its rules match. Without locations, no header is
 * a credential.
 */
export function compileHeadReader(
  locations: readonly CredentialLocation[],
  { headerNames, matchedHeaders }: Pick<RuleMatcher, "headerNames" | "matchedHeaders"> = NO_RULES,
): ReadHead {
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
  const aliased = new Set([...matchedHeaders].map(asCgiVariable));
  const known = new Map<string, number>();
  /** Cache of the last valid Host, because requests name few different hosts. */
  let knownHost = "";
  let knownHostName = "";

  function classify(name: string): number {
    const lower = name.toLowerCase();
    const slot = credentialNames.get(lower);
    const isAlias = !matchedHeaders.has(lower) && aliased.has(asCgiVariable(lower));
    const own =
      SPECIAL.get(lower) ??
      (slot !== undefined ? CREDENTIAL + slot : isIdentityHeader(lower) ? DROP : isAlias ? ALIAS : PASS);
    const meaning = own + NAMED * (headerNames.indexOf(lower) + 1);
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
    let ruleHeaders = NO_HEADERS as (string | undefined)[];
    let ambiguousHeader: string | undefined;
    if (headerNames.length > 0) ruleHeaders = new Array<string | undefined>(headerNames.length).fill(undefined);

    for (let i = 0; i < raw.length; i += 2) {
      const name = raw[i] as string;
      const value = raw[i + 1] as string;
      let meaning = known.get(name) ?? classify(name);
      if (meaning >= NAMED) {
        const at = Math.floor(meaning / NAMED) - 1;
        const before = ruleHeaders[at];
        if (before !== undefined && matchedHeaders.has(headerNames[at] as string)) ambiguousHeader = headerNames[at];
        ruleHeaders[at] = before === undefined ? value : `${before}, ${value}`;
        meaning %= NAMED;
      }
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
          if (isHost(value)) {
            knownHost = value;
            knownHostName = hostNameOf(value);
          } else malformed = "The Host header names no host.";
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
      } else if (meaning === ALIAS) {
        ambiguousHeader = name;
        forwarded.push(name, value);
      }
    }

    if (raw.length > 2 * HEADERS_MAX) malformed = `There are more than ${HEADERS_MAX} headers.`;
    else if (hosts > 1) malformed = "There is more than one Host header.";
    else if (hosts === 0 && httpVersion !== "1.0") malformed = "There is no Host header.";
    else if (lengths > 1) malformed = "There is more than one Content-Length header.";
    else if (codings > 1) malformed = "There is more than one Transfer-Encoding header.";
    else if (codings > 0 && lengths > 0) malformed = "There are both Content-Length and Transfer-Encoding.";
    // HTTP/1.0 does not define transfer codings, so the framing of this request is not trustworthy (RFC 9112, section 6.1).
    else if (codings > 0 && httpVersion === "1.0") malformed = "HTTP/1.0 has no transfer codings.";

    const named = namedInConnection(connection);
    if (named !== undefined) {
      forwarded = withoutNamed(forwarded, named);
      // Such a header is ambiguous: it would select the rule, but the app would not receive it.
      for (const name of matchedHeaders) if (named.has(name)) ambiguousHeader = name;
    }
    const hasBody = codings > 0 || (lengths > 0 && length !== "0");
    // Content-Length contains only digits, which the parser has checked.
    const bodyLength = lengths > 0 ? Number(length) : undefined;
    return {
      forwarded,
      malformed,
      hasBody,
      bodyLength,
      credential,
      credentialAt,
      duplicateCredential,
      forwardedFor,
      host: hosts === 0 ? "" : knownHostName,
      ruleHeaders,
      ambiguousHeader,
    };
  };
}

/**
 * Returns the credential if its scheme is one of the policy's. Other schemes, such as in `Authorization: Basic …`, may be meant for the
 * app.
 */
function findInHeader(
  header: CredentialHeader | undefined,
  value: string,
): { credential: string; at: number } | undefined {
  if (header === undefined) return undefined;
  for (const { scheme, at } of header.schemes) {
    if (scheme === undefined) return { credential: value, at };
    const { length } = scheme;
    // A space, a tab or the end of the value must follow the scheme: `Bearerx` is another scheme.
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
