import { durationText } from "./time.ts";

/* Texts for a policy, its pods and its rules. The functions are pure. */

export interface DataPlane {
  readonly pods: number;
  readonly silent: number;
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
  const { pods, silent, behind, unsupported, reason = "", stale, expired } = dataPlane;
  if (pods === 0 && silent === 0)
    return { kind: "plain", word: "no pods", why: "No gate has reported in the last 15 seconds." };
  if (unsupported > 0)
    return { kind: "bad", word: "unsupported", why: `${podsText(unsupported)} cannot enforce the policy: ${reason}` };
  if (expired > 0)
    return {
      kind: "bad",
      word: "stale, denied",
      why: `${podsText(expired)} deny all requests, because their data is too old.`,
    };
  if (silent > 0)
    return {
      kind: "bad",
      word: "silent",
      why: `${podsText(silent)} stopped reporting in the last 10 minutes without signing off: ${silent === 1 ? "it hangs or was" : "they hang or were"} killed.`,
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

/** Returns the name of a rule, as a list of rejections shows it: "rule 2 (refund)". */
export function ruleText(rule: number, name: string | undefined): string {
  if (rule < 0) return rule === -2 ? "rejected path" : "no rule matches";
  return name === undefined ? `rule ${rule + 1}` : `rule ${rule + 1} (${name})`;
}

/** The members of a rule that the page reads. A rule from a later release may have more. */
interface ReadRule {
  readonly name?: unknown;
  readonly methods?: unknown;
  readonly path?: unknown;
  readonly hosts?: unknown;
  readonly headers?: unknown;
  readonly access?: unknown;
  readonly permissions?: unknown;
  readonly creditCost?: unknown;
  readonly ratelimits?: unknown;
}

/**
 * Reads the rules of a stored policy. Tolerates unknown and missing members, so that a policy of another release does not break the page.
 */
export function rulesOf(policy: unknown): readonly ReadRule[] {
  const { rules } = (policy ?? {}) as { rules?: unknown };
  return listOf(rules).map((rule) => (rule ?? {}) as ReadRule);
}

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** Formats the requests of a rule: "GET, POST /orders/… at api.example.com with X-Api-Version: 2". */
export function requestsText({ methods, path, hosts, headers }: ReadRule): string {
  const names = listOf(hosts);
  const conditions = listOf(headers).map((header) => {
    const { name, exact } = (header ?? {}) as { name?: unknown; exact?: unknown };
    return typeof exact === "string" ? `${String(name)}: ${exact}` : `any ${String(name)}`;
  });
  return [
    listOf(methods).length > 0 ? listOf(methods).join(", ") : "any method",
    pathText(path),
    ...(names.length > 0 ? [`at ${names.join(" or ")}`] : []),
    ...(conditions.length > 0 ? [`with ${conditions.join(" and ")}`] : []),
  ].join(" ");
}

function pathText(path: unknown): string {
  const { prefix, exact, template } = (path ?? {}) as { prefix?: unknown; exact?: unknown; template?: unknown };
  if (typeof template === "string") return template;
  if (typeof exact === "string") return exact;
  return typeof prefix === "string" ? `${prefix}${prefix.endsWith("/") ? "" : "/"}…` : "any path";
}

const ACCESS_TEXT = { Anonymous: "admitted without a key", Deny: "denied with 403" } as const;

/** Formats what a rule requires: "a key with orders.write, 1 credit, at most 100 per 1 min for each key". */
export function demandText({ access, permissions, creditCost, ratelimits }: ReadRule): string {
  const limits = listOf(ratelimits).map((limit) => {
    const { limit: max, durationMs, identifier, by } = (limit ?? {}) as Partial<Record<string, unknown>>;
    return `at most ${rateText(max, durationMs)} for each ${byText(Array.isArray(by) ? by : [identifier])}`;
  });
  if (access === "Deny") return ACCESS_TEXT.Deny;
  if (access === "Anonymous") return [ACCESS_TEXT.Anonymous, ...limits].join(", ");
  return [
    typeof permissions === "string" ? `a key with ${permissions}` : "a valid key",
    ...(typeof creditCost === "number" && creditCost !== 1 ? [`${creditCost} credits`] : []),
    ...limits,
  ].join(", ");
}

const rateText = (max: unknown, durationMs: unknown): string =>
  `${String(max)} per ${typeof durationMs === "number" ? durationText(durationMs) : "?"}`;

/** Formats the values that a limit counts by: "key, {order} and header X-Tenant". */
function byText(by: readonly unknown[]): string {
  const words = by.map((value) =>
    String(value)
      .replace(/^path\.(.*)$/, "{$1}")
      .replace(/^header\./, "header "),
  );
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

/** Formats the access for requests that match no rule. */
export function otherRequestsText(policy: unknown): string {
  const { defaultAccess } = (policy ?? {}) as { defaultAccess?: unknown };
  return defaultAccess === "Anonymous" || defaultAccess === "Deny" ? ACCESS_TEXT[defaultAccess] : "a valid key";
}

/** Returns the limit of failed attempts and the source of client addresses, if the policy has them. */
export function clientFacts(policy: unknown): readonly (readonly [string, string])[] {
  const { failedAttempts, clientAddress } = (policy ?? {}) as Partial<Record<string, Partial<Record<string, unknown>>>>;
  const ipv6 = clientAddress?.ipv6PrefixBits ?? 64;
  const source = clientAddress?.from === "forwardedFor" ? "X-Forwarded-For" : "the connection";
  return [
    ...(failedAttempts === undefined
      ? []
      : [
          [
            "Failed attempts",
            `at most ${rateText(failedAttempts.limit, failedAttempts.durationMs)} for each address, then 429`,
          ] as const,
        ]),
    ...(clientAddress === undefined ? [] : [["Client address", `${source}; IPv6 counted by /${ipv6}`] as const]),
  ];
}

/** Returns the distinct ids of the namespaces in a policy's limits. */
export function namespaceIdsOf(policy: unknown): readonly string[] {
  const ids = rulesOf(policy).flatMap(({ ratelimits }) =>
    Array.isArray(ratelimits)
      ? ratelimits.flatMap((limit: { scope?: { namespaceId?: unknown } }) => limit?.scope?.namespaceId ?? [])
      : [],
  );
  return [...new Set(ids)].filter((id) => typeof id === "string").sort();
}
