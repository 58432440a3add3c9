import { evaluateQuery, type Query } from "../permissions/query.ts";
import type { Code } from "./codes.ts";
import { canonicalIp, type IpRange, isInRange, parseIp, parseIpRange } from "./ip-address.ts";
import type { KeyView } from "./key-view.ts";

export interface KeyCheck {
  readonly view: KeyView;
  readonly nowMs: number;
  /**
   * Client address. If omitted, the API's IP allow-list is not checked; a gate omits the address if its policy does not define how to find
   * it.
   */
  readonly clientIp?: string | undefined;
  /** API that the key must belong to. Default: any API. */
  readonly apiId?: string | undefined;
  /** Permission query. If it is a function, the function is called only for a key that has passed all earlier checks. */
  readonly query?: Query | (() => Query | undefined) | undefined;
}

export type CheckName = "api" | "workspace" | "enabled" | "ofApi" | "expiry" | "address" | "permissions";

interface Check {
  readonly name: CheckName;
  /** Returns the code with which the check rejects a key; `undefined` if the key passes. */
  readonly refuses: (check: KeyCheck) => Code | undefined;
}

/** Steps 7 to 11 of a verification (api-v2.md section 12), in order. Each check is independent of the earlier ones. */
export const KEY_CHECKS: readonly Check[] = [
  { name: "api", refuses: ({ view }) => (view.api === undefined ? "NOT_FOUND" : undefined) },
  { name: "workspace", refuses: ({ view }) => (view.workspace.enabled ? undefined : "FORBIDDEN") },
  { name: "enabled", refuses: ({ view }) => (view.key.enabled ? undefined : "DISABLED") },
  {
    name: "ofApi",
    refuses: ({ view, apiId }) => (apiId === undefined || view.key.apiId === apiId ? undefined : "FORBIDDEN"),
  },
  {
    name: "expiry",
    refuses: ({ view: { key }, nowMs }) =>
      key.expiresMs !== undefined && nowMs > key.expiresMs ? "EXPIRED" : undefined,
  },
  {
    name: "address",
    refuses: ({ view: { api }, clientIp }) =>
      api?.ipAllowList === undefined || clientIp === undefined || ipAllowed(api.ipAllowList, clientIp)
        ? undefined
        : "FORBIDDEN",
  },
  {
    name: "permissions",
    refuses: ({ view, query }) => {
      const asked = typeof query === "function" ? query() : query;
      return asked === undefined || evaluateQuery(asked, view.grants) ? undefined : "INSUFFICIENT_PERMISSIONS";
    },
  },
];

/**
 * Returns the code of the first check that rejects the key; `undefined` if the verification continues with limits and credits. Call it only
 * for a key that exists and that the caller is allowed to see. Throws the errors of a `query` function.
 */
export function checkKey(check: KeyCheck): Code | undefined {
  for (const { refuses } of KEY_CHECKS) {
    const code = refuses(check);
    if (code !== undefined) return code;
  }
  return undefined;
}

/** Parsed allow-lists. The lists belong to cached records, so each is parsed once per record. */
const readLists = new WeakMap<readonly string[], AllowList>();

interface AllowList {
  /** Single addresses of the list in canonical form. */
  readonly addresses: ReadonlySet<string>;
  readonly ranges: readonly IpRange[];
}

/**
 * Returns whether the address is on the list or in one of its ranges; an empty list allows all. An unreadable entry, for example from a
 * newer version, matches no address.
 */
export function ipAllowed(list: readonly string[], clientIp: string): boolean {
  if (list.length === 0) return true;
  let allowed = readLists.get(list);
  if (allowed === undefined) {
    allowed = readList(list);
    readLists.set(list, allowed);
  }
  const address = parseIp(clientIp);
  if (address === undefined) return false;
  return (
    allowed.addresses.has(address.toNormalizedString()) || allowed.ranges.some((range) => isInRange(address, range))
  );
}

function readList(list: readonly string[]): AllowList {
  const entries = list.map((entry) => entry.trim());
  const ranges = entries.filter((entry) => entry.includes("/")).map(parseIpRange);
  return {
    addresses: new Set(entries.map(canonicalIp).filter((address) => address !== undefined)),
    ranges: ranges.filter((range) => range !== undefined),
  };
}
