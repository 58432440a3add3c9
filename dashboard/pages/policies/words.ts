import { durationText } from "../../components/time.ts";

/* Texts for a policy, its pods and its rules. The functions are pure. */

export interface DataPlane {
  readonly pods: number;
  readonly updated: number;
  readonly behind: number;
  readonly unsupported: number;
  readonly reason?: string | undefined;
  readonly stale: number;
  readonly expired: number;
}

export interface StateInWords {
  readonly kind: "plain" | "good" | "warn" | "bad";
  readonly word: string;
  readonly why: string;
}

/** Returns the worst state among a policy's pods. */
export function stateOf(dataPlane: DataPlane | undefined): StateInWords {
  if (dataPlane === undefined)
    return { kind: "warn", word: "unknown", why: "Redis, to which pods report, does not respond." };
  const { pods, behind, unsupported, reason = "", stale, expired } = dataPlane;
  if (pods === 0) return { kind: "plain", word: "no pods", why: "No gate has reported in the last 15 seconds." };
  if (unsupported > 0)
    return { kind: "bad", word: "unsupported", why: `${podsText(unsupported)} cannot enforce the policy: ${reason}` };
  if (expired > 0)
    return {
      kind: "bad",
      word: "expired",
      why: `${podsText(expired)} deny all requests, because their data is too old.`,
    };
  if (behind > 0) return { kind: "warn", word: "behind", why: `${podsText(behind)} do not enforce this version yet.` };
  if (stale > 0)
    return {
      kind: "warn",
      word: "stale",
      why: `${podsText(stale)} serve with data that is older than onStale.after.`,
    };
  return { kind: "good", word: "in effect", why: "Every pod enforces this version." };
}

const podsText = (count: number): string => (count === 1 ? "1 pod" : `${count} pods`);

/** Formats the delay of a pod. A pod without a heartbeat reports `Number.MAX_SAFE_INTEGER`. */
export const lagText = (ms: number): string => (ms >= Number.MAX_SAFE_INTEGER ? "unknown" : durationText(ms));

export const ruleName = (rule: number): string =>
  rule === -2 ? "rejected path" : rule === -1 ? "no rule matches" : `rule ${rule + 1}`;

/** The members that the page reads from a rule; a policy of a later release may have more. */
interface ReadRule {
  readonly methods?: unknown;
  readonly path?: unknown;
  readonly access?: unknown;
  readonly permissions?: unknown;
  readonly creditCost?: unknown;
  readonly ratelimits?: unknown;
}

/** Reads the rules of a stored policy tolerantly, so that a policy of another release does not break the page. */
export function rulesOf(policy: unknown): readonly ReadRule[] {
  const { rules } = (policy ?? {}) as { rules?: unknown };
  return Array.isArray(rules) ? rules.map((rule) => (rule ?? {}) as ReadRule) : [];
}

/** Formats the requests of a rule: "GET, POST /orders…". */
export function requestsText({ methods, path }: ReadRule): string {
  const which = Array.isArray(methods) && methods.length > 0 ? methods.join(", ") : "any method";
  const { prefix, exact } = (path ?? {}) as { prefix?: unknown; exact?: unknown };
  if (typeof exact === "string") return `${which} ${exact}`;
  return `${which} ${typeof prefix === "string" ? `${prefix}${prefix.endsWith("/") ? "" : "/"}…` : "any path"}`;
}

/** Formats the requirements of a rule: "a key with orders.write, 1 credit, at most 100 per 1 min for each key". */
export function demandText({ access, permissions, creditCost, ratelimits }: ReadRule): string {
  if (access === "Anonymous") return "admitted without a key";
  const limits = Array.isArray(ratelimits) ? ratelimits : [];
  return [
    typeof permissions === "string" ? `a key with ${permissions}` : "a valid key",
    ...(typeof creditCost === "number" && creditCost !== 1 ? [`${creditCost} credits`] : []),
    ...limits.map((limit: { limit?: unknown; durationMs?: unknown; identifier?: unknown }) => {
      const { limit: max, durationMs, identifier } = limit ?? {};
      const window = typeof durationMs === "number" ? durationText(durationMs) : "?";
      return `at most ${String(max)} per ${window} for each ${String(identifier)}`;
    }),
  ].join(", ");
}

/** Returns the ids of the namespaces that the limits of a policy share, without duplicates. */
export function namespaceIdsOf(policy: unknown): readonly string[] {
  const ids = rulesOf(policy).flatMap(({ ratelimits }) =>
    Array.isArray(ratelimits)
      ? ratelimits.flatMap((limit: { scope?: { namespaceId?: unknown } }) => limit?.scope?.namespaceId ?? [])
      : [],
  );
  return [...new Set(ids)].filter((id) => typeof id === "string").sort();
}
