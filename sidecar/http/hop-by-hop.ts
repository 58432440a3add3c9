/*
 * Fields that this gate does not forward (RFC 9110, 7.6.1) in requests, responses, trailers and upgrades, in both directions. All names are
 * in lower case.
 */

/**
 * The fields of the RFC, and old or related ones that all proxies remove. `TE` is removed because it may request a coding that the gate
 * cannot decode. `HTTP2-Settings` belongs to an upgrade that the gate does not support.
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
 * `Connection` cannot remove these fields, because every receiver needs them for framing, routing and identifying the sender. By naming
 * `X-Forwarded-For` a client could hide its address if a proxy before the gate does not follow the RFC.
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

/** Fast path: the usual options of `Connection`, which name no field. */
const PLAIN = /^(?:close|keep-alive|upgrade|keep-alive, ?upgrade|upgrade, ?keep-alive)$/i;

/** Returns the fields that a `Connection` field removes, in addition to those of `HOP_BY_HOP`; `undefined` if it names none. */
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
