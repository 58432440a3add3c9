import type { Consumed, LimitCharge, LimitOutcome } from "../../core/charges.ts";
import { checkFreshness } from "../../core/policies/freshness.ts";
import type { EventSink } from "../../edge/events/contract.ts";
import { type AppliedLimit, applyOverrides } from "../../edge/verification/apply-overrides.ts";
import { count } from "../../edge/verification/count.ts";
import type { VerifyDeps } from "../decision/verify.ts";
import type { ActivePolicy } from "../policy/active-policy.ts";
import { type DescriptorEntry, identifierOf } from "./descriptor-identifier.ts";

/*
 * Makes the decisions of the rate limit service, independently of its protocol. A domain is a rate-limit namespace, and a descriptor is an
 * identifier in it. The limit is the active override of the identifier, or else the limit in the descriptor. A descriptor without an
 * override or a limit is unlimited. Either all descriptors are charged or none. Their counters are the same that policies and the API use
 * for this namespace.
 */

export interface RateLimitDeps {
  readonly policy: () => ActivePolicy | undefined;
  readonly counting: VerifyDeps;
  readonly events: Pick<EventSink, "add">;
  readonly nextId: () => string;
}

export interface Descriptor {
  readonly entries: readonly DescriptorEntry[];
  /** Limit in the descriptor; `undefined` if the descriptor contains none. */
  readonly limit: { readonly limit: number; readonly durationMs: number } | undefined;
  /** Cost of the request; 0 checks the limit without charging. */
  readonly cost: number;
}

/**
 * Result for one descriptor. `charge` and `outcome` are `undefined` if the descriptor has no limit. If the descriptor was admitted without
 * being counted, only `outcome` is `undefined`.
 */
export interface DescriptorOutcome {
  readonly charge: LimitCharge | undefined;
  readonly outcome: LimitOutcome | undefined;
}

export type RateLimited =
  | {
      readonly kind: "decided";
      readonly passed: boolean;
      /** Results in the order of the descriptors. */
      readonly outcomes: readonly DescriptorOutcome[];
      readonly consumed: Consumed | undefined;
    }
  | { readonly kind: "unknownDomain" }
  | { readonly kind: "undecided"; readonly reason: string };

const undecided = (reason: string): RateLimited => ({ kind: "undecided", reason });

/** Decides on the descriptors of a domain. The promise rejects only after an internal error. */
export async function rateLimit(
  deps: RateLimitDeps,
  domain: string,
  descriptors: readonly Descriptor[],
): Promise<RateLimited> {
  const startedMs = performance.now();
  const { counting } = deps;
  const active = deps.policy();
  if (active === undefined) return undecided("The gate has not received its policy yet.");
  const { policy } = active;
  const freshness = checkFreshness(policy.onStale, counting.projection.stalenessMs());
  if (freshness === "Expired") return undecided("What the gate knows of rate limits is too old.");
  if (freshness === "Stale") counting.onStaleDecision();
  const namespaceId = await findNamespaceId(counting, active, domain);
  if (typeof namespaceId !== "string") return namespaceId;

  const applied = await limitsOf(counting, policy.onCounterFailure, namespaceId, descriptors);
  if (applied === undefined) return undecided("The overrides of the namespace cannot be read now.");
  const limited = applied.filter((one) => one !== undefined);
  const counted = await countAll(counting, policy, limited);
  if (counted === undefined) return undecided("Rate limits cannot be counted now.");
  const { consumed } = counted;

  let at = 0;
  const outcomes = applied.map((one): DescriptorOutcome => {
    if (one === undefined) return { charge: undefined, outcome: undefined };
    return { charge: one.charge, outcome: consumed?.limits[at++] };
  });
  if (consumed !== undefined) record(deps, limited, consumed, performance.now() - startedMs);
  const passed = consumed?.passed !== false || policy.mode === "Audit";
  return { kind: "decided", passed, outcomes, consumed };
}

/**
 * Returns the id of the namespace whose id or, if there is none, whose name is `domain`. Also checks the namespaces that the policy uses,
 * because name records may be missing or unreadable during an upgrade.
 */
async function findNamespaceId(
  counting: VerifyDeps,
  { policy }: ActivePolicy,
  domain: string,
): Promise<string | RateLimited> {
  const { projection, workspaceId } = counting;
  const named = policy.rules.flatMap(({ ratelimits }) =>
    ratelimits.flatMap(({ scope }) => (scope.kind === "namespace" ? [scope.namespaceId] : [])),
  );
  const lookups = await Promise.all(
    [...new Set([domain, ...named])].map((id) => projection.findNamespace(workspaceId, id)),
  );
  const [byId] = lookups;
  if (byId?.status === "found" && !byId.value.deleted) return byId.value.id;
  for (const lookup of lookups) {
    if (lookup.status === "found" && !lookup.value.deleted && lookup.value.name === domain) return lookup.value.id;
  }
  const byName = await findByName(counting, domain);
  if (byName.status === "found") return byName.value.id;
  if (![...lookups, byName].some(({ status }) => status === "unusable")) return { kind: "unknownDomain" };
  // The namespace is unknown, so the domain serves as its id. This way, limits in descriptors are still counted.
  return policy.onCounterFailure === "Deny" ? undecided("The namespace cannot be looked up now.") : domain;
}

/** Finds a namespace by name. Also reads the namespace record itself, because the name record may be outdated during an upgrade. */
async function findByName(
  { projection, workspaceId }: VerifyDeps,
  name: string,
): Promise<Awaited<ReturnType<VerifyDeps["projection"]["findNamespace"]>>> {
  const named = await projection.findNamespaceByName(workspaceId, name);
  if (named.status !== "found" || named.value.deleted) return named.status === "found" ? { status: "absent" } : named;
  const itself = await projection.findNamespace(workspaceId, named.value.id);
  const isStill = itself.status !== "found" || (itself.value.name === name && !itself.value.deleted);
  return isStill ? itself : { status: "absent" };
}

/**
 * Returns the limit of each descriptor, or `undefined` for a descriptor without a limit. Returns `undefined` instead of an array if
 * overrides cannot be read and the policy denies in this case.
 */
async function limitsOf(
  { projection, workspaceId }: VerifyDeps,
  onCounterFailure: ActivePolicy["policy"]["onCounterFailure"],
  namespaceId: string,
  descriptors: readonly Descriptor[],
): Promise<Array<AppliedLimit | undefined> | undefined> {
  const charges = descriptors.map(
    ({ entries, limit, cost }): LimitCharge => ({
      workspaceId,
      scope: { kind: "namespace", value: namespaceId },
      identifier: identifierOf(entries),
      limit: limit?.limit ?? 0,
      durationMs: limit?.durationMs ?? 1000,
      cost,
      accuracy: "strict",
    }),
  );
  const applied = await applyOverrides(projection, charges);
  if ("unusable" in applied) {
    if (onCounterFailure === "Deny") return undefined;
    return charges.map((charge, at) =>
      descriptors[at]?.limit === undefined ? undefined : { charge, override: undefined },
    );
  }
  return applied.limits.map((one, at) =>
    one.override === undefined && descriptors[at]?.limit === undefined ? undefined : one,
  );
}

/** Counts the descriptors. Returns `undefined` if they cannot be counted and the policy does not admit uncounted requests. */
async function countAll(
  counting: VerifyDeps,
  { onCounterFailure, onCreditFailure }: ActivePolicy["policy"],
  limited: readonly AppliedLimit[],
): Promise<{ readonly consumed: Consumed | undefined } | undefined> {
  if (limited.length === 0) return { consumed: undefined };
  const limits = limited.map(({ charge }) => charge);
  const plan = { limits, shared: [], credits: undefined };
  const counted = await count(counting, { plan, withoutStore: { onCounterFailure, onCreditFailure } });
  return counted.kind === "counted" ? counted : undefined;
}

/** Records one event per counted descriptor, like `ratelimit.multiLimit`. */
function record(
  { events, nextId }: RateLimitDeps,
  limited: readonly AppliedLimit[],
  consumed: Consumed,
  tookMs: number,
): void {
  const ending = nextId();
  for (const [at, { charge, override }] of limited.entries()) {
    const outcome = consumed.limits[at];
    if (outcome === undefined) continue;
    events.add({
      type: "ratelimit",
      id: at === 0 ? `req_${ending}` : `req_${ending}_${at}`,
      requestId: `req_${ending}`,
      timeMs: consumed.nowMs,
      workspaceId: charge.workspaceId,
      namespaceId: charge.scope.value,
      identifier: charge.identifier,
      passed: outcome.passed,
      latencyMs: tookMs,
      overrideId: override?.id,
      limit: charge.limit,
      remaining: outcome.remaining,
      resetMs: outcome.resetMs,
      cost: charge.cost,
    });
  }
}
