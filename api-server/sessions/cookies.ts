/*
 * The cookies of the dashboard. `__Host-` makes a browser refuse one that is not Secure, or that names a domain: so no other host of the
 * same domain, and no page over plain http, can plant one.
 */

/** The token of a session. */
export const SESSION_COOKIE = "__Host-postern";

/** While someone signs in with an OpenID provider: which browser began it. */
export const FLOW_COOKIE = "__Host-postern-sign-in";

/** 256 bits in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** The value of a cookie; undefined when the header has none of this name, or what is no token of ours. */
export function readTokenCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined;
  for (const pair of header.split(";")) {
    const at = pair.indexOf("=");
    if (at === -1 || pair.slice(0, at).trim() !== name) continue;
    const value = pair.slice(at + 1).trim();
    return TOKEN.test(value) ? value : undefined;
  }
  return undefined;
}

/** Without an age: it ends with the browser, and the session ends in the database. `Strict` is not sent with requests that other sites begin. */
export const sessionCookie = (token: string): string =>
  `${SESSION_COOKIE}=${token}; Path=/; Secure; HttpOnly; SameSite=Strict`;

/** `Lax`, because the provider's redirect back comes from another site, with which a `Strict` cookie is not sent. */
export const flowCookie = (token: string, maxAgeS: number): string =>
  `${FLOW_COOKIE}=${token}; Path=/; Max-Age=${maxAgeS}; Secure; HttpOnly; SameSite=Lax`;

export const noCookie = (name: string): string => `${name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict`;
