/*
 * Cookies of the dashboard. Browsers reject a cookie with the prefix `__Host-` if it is not Secure or names a domain. Therefore, neither
 * other hosts of the same domain nor pages over plain HTTP can set such a cookie.
 */

/** Cookie with the token of a session. */
export const SESSION_COOKIE = "__Host-postern";

/** Cookie that identifies the browser during a sign-in with an OpenID provider. */
export const FLOW_COOKIE = "__Host-postern-sign-in";

/** Format of a token: 256 bits in base64url. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

/** Returns the value of a cookie; `undefined` if the header has no cookie with this name, or its value is not a valid token. */
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

/**
 * Session cookie. It has no Max-Age, so the browser deletes the cookie when the browser is closed; the session's own expiry is in the
 * database. Browsers do not send `Strict` cookies with requests that other sites initiate.
 */
export const sessionCookie = (token: string): string =>
  `${SESSION_COOKIE}=${token}; Path=/; Secure; HttpOnly; SameSite=Strict`;

/**
 * Cookie of a sign-in flow. It is `Lax`, because browsers do not send `Strict` cookies when the provider, which is another site, redirects
 * back.
 */
export const flowCookie = (token: string, maxAgeS: number): string =>
  `${FLOW_COOKIE}=${token}; Path=/; Max-Age=${maxAgeS}; Secure; HttpOnly; SameSite=Lax`;

export const noCookie = (name: string): string => `${name}=; Path=/; Max-Age=0; Secure; HttpOnly; SameSite=Strict`;
