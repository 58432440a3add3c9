/*
 * Fields that the gate does not forward (RFC 9110, 7.6.1) in requests, responses, trailers and upgrades, in both directions. All names are
 * in lower case.
 */

/**
 * Hop-by-hop fields of the RFC, and related ones that all proxies remove. `TE` is removed because it may request a coding that the gate
 * cannot decode, and `HTTP2-Settings` because the gate does not support this upgrade.
 */
export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Fields that `Connection` cannot remove, because every receiver needs them for framing, routing or identifying the sender. A client that
 * names `X-Forwarded-For` in `Connection` could otherwise hide its address behind a proxy that does not follow the RFC.
 */
const END_TO_END: ReadonlySet<string> = new Set([
  "authorization",
  "cache-control",
  "cookie",
  "date",
  "forwarded",
  "host",
  "location",
  "set-cookie",
  "via",
  "www-authenticate",
  "x-real-ip",
]);
const END_TO_END_PREFIXES = /^(?:content|x-forwarded|sec)-/;

/** Usual values of `Connection`. They list no field to remove, so they are handled on a fast path. */
const PLAIN = /^(?:close|keep-alive|upgrade|keep-alive, ?upgrade|upgrade, ?keep-alive)$/i;

/** Returns the fields that a `Connection` field removes in addition to `HOP_BY_HOP`; `undefined` if there are none. */
export function namedInConnection(connection: string | readonly string[] | undefined): ReadonlySet<string> | undefined {
  if (connection === undefined) return undefined;
  const text = typeof connection === "string" ? connection : connection.join(",");
  if (PLAIN.test(text)) return undefined;
  const named = new Set<string>();
  for (const token of text.split(",")) {
    const name = token.trim().toLowerCase();
    if (name !== "" && !END_TO_END.has(name) && !END_TO_END_PREFIXES.test(name)) named.add(name);
  }
  return named.size === 0 ? undefined : named;
}
