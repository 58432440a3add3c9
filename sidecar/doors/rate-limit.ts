import type { Consumed, LimitCharge, LimitOutcome } from "../../core/charges.ts";
import { judgeFreshness } from "../../core/policies/freshness.ts";
import type { EventSink } from "../../edge/events/contract.ts";
import { type AppliedLimit, applyOverrides } from "../../edge/verification/apply-overrides.ts";
import { count } from "../../edge/verification/count.ts";
import type { VerifyParts } from "../gate/verify.ts";
import type { PolicyInForce } from "../policy/in-force.ts";
import { type DescriptorEntry, identifierOf } from "./descriptor-identifier.ts";

/*
 * What the rate limit door decides, apart from how it is asked. A domain is a rate-limit namespace, a descriptor an identifier in it. Its limit is that
 * of the override in force for the identifier, else the one that the descriptor brings along, else there is none. They are charged
 * together, all or none, on the counters that policies and the API use for this namespace.
 */

export interface RateLimitParts {
  readonly policy: () => PolicyInForce | undefined;
  readonly counting: VerifyParts;
  readonly events: Pick<EventSink, "add">;
  readonly nextId: () => string;
}

export interface Descriptor {
  readonly entries: readonly DescriptorEntry[];
  /** Brought along; undefined when it brings none. */
  readonly limit: { readonly limit: number; readonly durationMs: number } | undefined;
  /** 0 only checks. */
  readonly cost: number;
}

/** `charge` and `outcome` are undefined for a descriptor that nothing limits, and `outcome` for one that was let in uncounted. */
export interface DescriptorOutcome {
  readonly charge: LimitCharge | undefined;
  readonly outcome: LimitOutcome | undefined;
}

export type RateLimited =
  | {
      readonly kind: "decided";
      readonly passed: boolean;
      /** In the order of the descriptors. */
      readonly outcomes: readonly DescriptorOutcome[];
      readonly consumed: Consumed | undefined;
    }
  | { readonly kind: "unknownDomain" }
  | { readonly kind: "undecided"; readonly reason: string };

const undecided = (reason: string): RateLimited => ({ kind: "undecided", reason });

/** Rejects only with our own faults. */
export async function rateLimit(
  parts: RateLimitParts,
  domain: string,
  descriptors: readonly Descriptor[],
): Promise<RateLimited> {
  const startedMs = performance.now();
  const { counting } = parts;
  const inForce = parts.policy();
  if (inForce === undefined) return undecided("The gate has not received its policy yet.");
  const { policy } = inForce;
  const freshness = judgeFreshness(policy.onStale, counting.projection.stalenessMs());
  if (freshness === "Denied") return undecided("What the gate knows of rate limits is too old.");
  if (freshness === "Departed") counting.onDeparted();
  const namespaceId = await findNamespaceId(counting, inForce, domain);
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
  if (consumed !== undefined) record(parts, limited, consumed, performance.now() - startedMs);
  const passed = consumed?.passed !== false || policy.mode === "Audit";
  return { kind: "decided", passed, outcomes, consumed };
}

/**
 * The namespace with this id, else the live one of this name. Those that the policy names are looked at, too: a relay of the release before does not
 * write names, and a user of Redis that was made for it may not read them.
 */
async function findNamespaceId(
  counting: VerifyParts,
  { policy }: PolicyInForce,
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
  // As when overrides cannot be read: what descriptors bring along is counted, here under the domain itself.
  return policy.onCounterFailure === "Deny" ? undecided("The namespace cannot be looked up now.") : domain;
}

/** Also looks at the namespace itself: while a relay of the release before is at work, the record of a name may be of a name that it has no more. */
async function findByName(
  { projection, workspaceId }: VerifyParts,
  name: string,
): Promise<Awaited<ReturnType<VerifyParts["projection"]["findNamespace"]>>> {
  const named = await projection.findNamespaceByName(workspaceId, name);
  if (named.status !== "found" || named.value.deleted) return named.status === "found" ? { status: "absent" } : named;
  const itself = await projection.findNamespace(workspaceId, named.value.id);
  const isStill = itself.status !== "found" || (itself.value.name === name && !itself.value.deleted);
  return isStill ? itself : { status: "absent" };
}

/** The limit of each descriptor, undefined for one that has none; undefined as a whole when overrides cannot be read and the policy denies. */
async function limitsOf(
  { projection, workspaceId }: VerifyParts,
  onCounterFailure: PolicyInForce["policy"]["onCounterFailure"],
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

/** Undefined when they cannot be counted, and the policy does not let requests in without that. */
async function countAll(
  counting: VerifyParts,
  { onCounterFailure, onCreditFailure }: PolicyInForce["policy"],
  limited: readonly AppliedLimit[],
): Promise<{ readonly consumed: Consumed | undefined } | undefined> {
  if (limited.length === 0) return { consumed: undefined };
  const limits = limited.map(({ charge }) => charge);
  const plan = { limits, shared: [], credits: undefined };
  const counted = await count(counting, { plan, withoutStore: { onCounterFailure, onCreditFailure } });
  return counted.kind === "counted" ? counted : undefined;
}

/** One event for each descriptor that was counted, as for `ratelimit.multiLimit`. */
function record(
  { events, nextId }: RateLimitParts,
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
