import type { LimitCharge, LimitOutcome } from "../charges.ts";
import { formatDuration } from "../manifests/from-store/format-duration.ts";
import type { KeyView } from "../verification/key-view.ts";
import type { ChargePlan } from "../verification/plan-charges.ts";
import { uncountedLimits } from "./explain-uncounted.ts";
import type { ExplainedKey, ExplainedLimit, RecordedVerification, SeenCounts, Source } from "./shapes.ts";
import { counterSource, keySource, requestSource, said, UNKNOWN_AGE, type Undecided } from "./step.ts";

/** What was observed while a request was counted against its limits. `view` is `undefined` if the request has no key. */
export interface RecordedCount extends Pick<RecordedVerification, "plan" | "recordsAgeMs" | "uncounted" | "policy"> {
  readonly check: { readonly view: KeyView | undefined };
}

/** Explains a request without a key that is charged to the limits of its rule. */
export function explainCount(
  seen: RecordedCount & { readonly plan: ChargePlan; readonly counted: SeenCounts | undefined },
): ExplainedKey {
  const limits = seen.counted === undefined ? [] : explainLimits(seen, seen.plan, seen.counted);
  const step = limitsStep(seen, limits);
  const isUnknown = seen.uncounted?.onCounterFailure === "Deny" && !seen.uncounted.isAsync;
  return { ...NO_PERMISSIONS, steps: [{ ...step, decisive: step.result === "refused" || isUnknown }], limits };
}

const NO_PERMISSIONS = { permissions: { needed: [], held: [], heldCount: 0 } };

/** Explains each limit: its counted values, and the values that an override replaced. */
export function explainLimits(
  { check: { view }, policy }: RecordedCount,
  plan: ChargePlan,
  { limits, consumed, overrides, namespaces }: SeenCounts,
): ExplainedLimit[] {
  return limits.map((charge, i) => {
    const sharedAt = i - plan.limits.length;
    const asked = sharedAt < 0 ? undefined : plan.shared[sharedAt];
    const override = sharedAt < 0 ? undefined : overrides[sharedAt];
    const namespace = sharedAt < 0 ? undefined : namespaces.get(charge.scope.value);
    return {
      ...explainLimit(charge, consumed.limits[i]),
      ...(namespace === undefined ? {} : { namespace }),
      source: sourceOf(charge, { view, plan, own: policy === undefined ? "request" : "rule" }),
      overridden: override !== undefined,
      ...(override === undefined || asked === undefined
        ? {}
        : {
            override: {
              id: override.id,
              identifier: override.identifier,
              limitBefore: asked.limit,
              durationBefore: asked.durationMs,
            },
          }),
    };
  });
}

function explainLimit(
  { scope, identifier, limit, durationMs, cost, accuracy }: LimitCharge,
  outcome: LimitOutcome | undefined,
): Omit<ExplainedLimit, "source" | "overridden"> {
  const remaining = Math.max(0, outcome?.remaining ?? 0);
  const retryAt = outcome?.passed === false ? outcome.retryAtMs : undefined;
  return {
    name: scope.value,
    identifier,
    limit,
    duration: durationMs,
    cost,
    used: Math.max(0, limit - remaining),
    remaining,
    passed: outcome?.passed ?? false,
    reset: outcome?.resetMs ?? 0,
    ...(retryAt === undefined || !Number.isFinite(retryAt) ? {} : { retryAt }),
    async: accuracy === "local",
  };
}

/** Returns the origin of a limit: the identity, the key, the request, the rule, or a namespace. */
function sourceOf(
  charge: LimitCharge,
  {
    view,
    plan,
    own,
  }: { readonly view: KeyView | undefined; readonly plan: ChargePlan; readonly own: "request" | "rule" },
): ExplainedLimit["source"] {
  if (charge.scope.kind === "namespace") return "namespace";
  const selected = plan.selected.find(({ name }) => name === charge.scope.value);
  if (selected === undefined || selected.id === "") return own;
  return selected.identifier === view?.identity?.id ? "identity" : "key";
}

export function limitsStep(seen: RecordedCount, limits: readonly ExplainedLimit[]): Undecided {
  const { check, plan, recordsAgeMs, uncounted, policy } = seen;
  const { view } = check;
  if (typeof plan === "string") return { ...said("limits", "skipped", "", plan), sources: [requestSource] };
  const isNone = plan.limits.length + plan.shared.length === 0;
  if (isNone) {
    const sources = view === undefined ? [requestSource] : [keySource({ view }, recordsAgeMs)];
    return { ...said("limits", true, "", "No limit applies."), sources };
  }
  if (uncounted !== undefined) {
    return uncountedLimits({ uncounted, policy }, [counterSource(UNKNOWN_AGE)]);
  }
  const refusing = limits.filter(({ passed }) => !passed);
  const passed = refusing.length === 0;
  const observed = limits.map((limit) => `${nameLimit(limit)} ${limit.used}/${limit.limit}`).join(", ");
  const detail = passed
    ? `Every limit would let it through: ${limits.map(sayLimit).join("; ")}.`
    : `Used up: ${refusing.map(sayLimit).join("; ")}.`;
  return {
    ...said("limits", passed, observed, detail),
    sources: [...limitSources(seen, passed ? limits : refusing), counterSource(0)],
  };
}

/** Formats the name of a limit. If a limit counts by values other than the key or the identity, adds these values. */
const nameLimit = ({ name, namespace = name, source, identifier }: ExplainedLimit): string =>
  (source === "rule" || source === "namespace") && identifier.includes("=") ? `${namespace} ${identifier}` : namespace;

function sayLimit(explained: ExplainedLimit): string {
  const { used, limit, duration, cost, override, source } = explained;
  const by =
    override === undefined
      ? `of the ${source}`
      : `by the override ${JSON.stringify(override.identifier)}, instead of ${override.limitBefore}`;
  return `${nameLimit(explained)}, ${used} of ${limit} used in ${formatDuration(duration)} (${by}), it costs ${cost}`;
}

/** Returns the distinct sources of the limits, in the order of the limits. */
function limitSources(seen: RecordedCount, limits: readonly ExplainedLimit[]): Source[] {
  const sources = limits.map((limit) => limitSource(seen, limit));
  return [...new Map(sources.map((source) => [`${source.kind} ${source.id}`, source])).values()];
}

function limitSource(
  { check: { view }, policy, recordsAgeMs: ageMs }: RecordedCount,
  { source, name, namespace, override }: ExplainedLimit,
): Source {
  switch (source) {
    case "key":
      return view === undefined ? requestSource : keySource({ view }, ageMs);
    case "identity":
      return { kind: "identity", id: view?.identity?.id ?? "", name: view?.identity?.externalId ?? "", ageMs };
    case "namespace":
      if (override === undefined) return { kind: "namespace", id: name, name: namespace, ageMs };
      return { kind: "override", id: override.id, name: override.identifier, ageMs };
    case "rule":
    case "request":
      return policy === undefined ? requestSource : { kind: "policy", ...policy };
  }
}
