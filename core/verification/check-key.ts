import { evaluateQuery, type Query } from "../permissions/query.ts";
import type { Code } from "./codes.ts";
import { canonicalIp } from "./ip-address.ts";
import type { KeyView } from "./key-view.ts";

export interface KeyCheck {
  readonly view: KeyView;
  readonly nowMs: number;
  /** Without it the API's IP allow-list does not count: a pod whose policy does not say how the client's address is found. */
  readonly clientIp?: string | undefined;
  readonly query?: Query | undefined;
}

/**
 * Steps 7 to 11 of a verification (api/v2 section 12), in their order: the first that refuses names the code. undefined: go
 * on to limits and credits. The caller has found the key, may see it, and has parsed the query.
 */
export function checkKey({ view, nowMs, clientIp, query }: KeyCheck): Code | undefined {
  const { key, api } = view;
  if (api === undefined) return "NOT_FOUND";
  if (!view.workspace.enabled) return "FORBIDDEN";
  if (!key.enabled) return "DISABLED";
  if (key.expiresMs !== undefined && nowMs > key.expiresMs) return "EXPIRED";
  if (api.ipAllowList !== undefined && clientIp !== undefined && !ipAllowed(api.ipAllowList, clientIp)) {
    return "FORBIDDEN";
  }
  if (query !== undefined && !evaluateQuery(query, view.grants)) return "INSUFFICIENT_PERMISSIONS";
  return undefined;
}

/** Lists are parts of cached records, so each is read once for as long as the record lives. */
const canonicalLists = new WeakMap<readonly string[], ReadonlySet<string>>();

/** Whether the address is on the list; an empty list allows all. Addresses compare in canonical form. */
export function ipAllowed(list: readonly string[], clientIp: string): boolean {
  if (list.length === 0) return true;
  let canonical = canonicalLists.get(list);
  if (canonical === undefined) {
    canonical = new Set(list.map((entry) => canonicalIp(entry.trim())).filter((entry) => entry !== undefined));
    canonicalLists.set(list, canonical);
  }
  const address = canonicalIp(clientIp);
  return address !== undefined && canonical.has(address);
}
