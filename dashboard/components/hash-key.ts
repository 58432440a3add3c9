/**
 * SHA-256 of a whole key in base64, as the store has it (core/keys/key-string.ts, which a browser cannot run). undefined where the browser has no
 * WebCrypto: on a page that came by plain HTTP from another machine.
 */
export async function hashKey(secret: string): Promise<string | undefined> {
  if (globalThis.crypto?.subtle === undefined) return undefined;
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(secret));
  return btoa(String.fromCharCode(...new Uint8Array(digest)));
}

export const NO_HASHING =
  "This browser hashes only on pages that came by HTTPS or from this machine, and a key is not sent as it is. Open the dashboard by HTTPS, or search by what the key starts with.";
