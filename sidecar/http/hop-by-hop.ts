/*
 * Which fields of a message go no further than this gate (RFC 9110, 7.6.1): in requests, answers, trailers and upgrades, in both
 * directions. All names are in lower case.
 */

/**
 * Those of the RFC, and the old or related ones that are treated as such everywhere. `TE` goes because of what it may ask for: a
 * coding that nobody here could undo. `HTTP2-Settings` belongs to an upgrade that is not made.
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
 * `Connection` cannot take these away: they say what a message is, who sent it and for whom, to all who read it. A client that names
 * `X-Forwarded-For` would hide where it comes from, when a proxy before the gate did not do what the RFC asks of it.
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

/** Options of `Connection` that name no field, which are nearly all that are sent. */
const PLAIN = /^(?:close|keep-alive|upgrade|keep-alive, ?upgrade|upgrade, ?keep-alive)$/i;

/** The fields that a `Connection` field takes away, beside those of `HOP_BY_HOP`. undefined where it names none. */
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
