/**
 * Returns the SHA-256 of a complete key in base64, as the database stores it (core/keys/key-string.ts cannot run in a browser). Returns
 * `undefined` if the browser has no WebCrypto, as on a page that another machine serves over plain HTTP.
 */
export async function hashKey(secret: string): Promise<string | undefined> {
  if (globalThis.crypto?.subtle === undefined) return undefined;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}

export const NO_HASHING =
  "The browser can hash keys only on pages loaded over HTTPS or from a loopback address, and the dashboard never sends a key itself. Open the dashboard over HTTPS, or search by the start of the key.";
