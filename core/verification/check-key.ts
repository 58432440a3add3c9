import { evaluateQuery, type Query } from "../permissions/query.ts";
import type { Code } from "./codes.ts";
import { canonicalIp, type IpRange, isInRange, parseIp, parseIpRange } from "./ip-address.ts";
import type { KeyView } from "./key-view.ts";

export interface KeyCheck {
  readonly view: KeyView;
  readonly nowMs: number;
  /** Without it the API's IP allow-list is not checked: for a pod whose policy does not say how to find the client's address. */
  readonly clientIp?: string | undefined;
  /** The API that the key must be of; any when left out. */
  readonly apiId?: string | undefined;
  /** As a function it is read only for a key that has passed everything before. */
  readonly query?: Query | (() => Query | undefined) | undefined;
}

export type CheckName = "api" | "workspace" | "enabled" | "ofApi" | "expiry" | "address" | "permissions";

interface Check {
  readonly name: CheckName;
  /** The code with which the check refuses a key; undefined when the key passes. */
  readonly refuses: (check: KeyCheck) => Code | undefined;
}

/** Steps 7 to 11 of a verification (api-v2.md section 12), in order. One does not need those before it to have passed. */
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
 * The first check that refuses decides the code. undefined: continue with limits and credits. The caller has found the key and may see
 * it. Throws what a query that is a function throws.
 */
export function checkKey(check: KeyCheck): Code | undefined {
  for (const { refuses } of KEY_CHECKS) {
    const code = refuses(check);
    if (code !== undefined) return code;
  }
  return undefined;
}

/** Lists are parts of cached records, so each is parsed once during the record's life. */
const readLists = new WeakMap<readonly string[], AllowList>();

interface AllowList {
  /** In canonical form. */
  readonly addresses: ReadonlySet<string>;
  readonly ranges: readonly IpRange[];
}

/**
 * Whether the address is on the list, or in a range of it; an empty list allows all. An unreadable entry, such as one of a later
 * release, matches nothing.
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
