import type { CredentialLocation } from "../../core/policies/policy.ts";

export interface QueryReading {
  /** Query for the app, including its `?`, or an empty string. Credential parameters are removed; all other bytes are unchanged. */
  readonly query: string;
  readonly credential: string | undefined;
  /** Index of the credential's location in the policy's order. */
  readonly credentialAt: number;
  readonly duplicate: boolean;
}

export type ReadQuery = (query: string) => QueryReading;

/** Compiles a reader for the query parameters in which the policy looks for keys; `undefined` if there are none, as in most policies. */
export function compileQueryReader(locations: readonly CredentialLocation[]): ReadQuery | undefined {
  const orderByName = new Map<string, number>();
  for (const [at, location] of locations.entries()) {
    if (location.in === "query" && !orderByName.has(location.name)) orderByName.set(location.name, at);
  }
  if (orderByName.size === 0) return undefined;

  return (query) => {
    let credential: string | undefined;
    let credentialAt = Number.MAX_SAFE_INTEGER;
    let duplicate = false;
    const seen = new Set<string>();
    const kept: string[] = [];
    const all = query.slice(1).split("&");
    for (const pair of all) {
      const equals = pair.indexOf("=");
      const name = decode(equals === -1 ? pair : pair.slice(0, equals));
      const at = orderByName.get(name);
      if (at === undefined) {
        kept.push(pair);
        continue;
      }
      if (seen.has(name)) duplicate = true;
      seen.add(name);
      if (at < credentialAt) {
        credential = equals === -1 ? "" : decode(pair.slice(equals + 1));
        credentialAt = at;
      }
    }
    const rest = kept.length === all.length ? query : kept.length === 0 ? "" : `?${kept.join("&")}`;
    return { query: rest, credential, credentialAt, duplicate };
  };
}

/** Decodes a name as an app would, so that a name with escapes is recognized too. */
function decode(text: string): string {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    // The text is not UTF-8, so escapes are decoded one by one; ASCII characters are still recognized.
    return spaced.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
}
