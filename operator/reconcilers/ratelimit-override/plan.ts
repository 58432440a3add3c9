import { parseDuration } from "../../../core/manifests/duration.ts";
import { labelOf, olderRival } from "../claims.ts";
import {
  CONFLICT_REQUEUE_MS,
  firstOf,
  type Plan,
  progressing,
  ready,
  released,
  stalled,
  type Verdict,
} from "../plan.ts";
import { deletionPolicyOf, invalid } from "../spec.ts";
import type { ObservedOverride, StoredOverride } from "./gather.ts";

export type OverrideAction =
  | {
      readonly type: "set";
      readonly namespaceId: string;
      readonly identifier: string;
      readonly limit: number;
      readonly durationMs: number;
      readonly async: boolean;
    }
  | { readonly type: "delete" | "release"; readonly namespaceId: string; readonly identifier: string };

/** What is to be done so that the namespace has the override as the manifest says. */
export function planOverride(observed: ObservedOverride): Plan<OverrideAction> {
  const { object, parsed, namespace, stored, former } = observed;
  if (object.metadata.deletionTimestamp !== undefined) return planDeletion(observed);
  const own = isOwn(observed) ? stored : former;
  const status = { overrideId: own?.overrideId, namespaceId: own?.namespaceId };
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) {
    return {
      actions: [],
      verdict,
      status,
      ...(verdict.reason === "Conflict" ? { requeueAfterMs: CONFLICT_REQUEUE_MS } : {}),
    };
  }
  const { spec } = parsed;
  if (spec === undefined || !("namespaceId" in namespace)) throw new Error("an unresolved override passed the checks");
  const wanted = {
    namespaceId: namespace.namespaceId,
    identifier: spec.identifier,
    limit: spec.limit,
    durationMs: parseDuration(spec.duration),
    async: spec.async,
  };
  const actions: OverrideAction[] = [
    ...(former === undefined ? [] : [removal("delete", former)]),
    ...(stored !== undefined && isSame(stored, wanted) ? [] : [{ type: "set", ...wanted } as const]),
  ];
  if (actions.length > 0) return { actions, verdict: progressing("Progressing", "The override is being set."), status };
  return { actions, verdict: ready(`The override is in the store as ${stored?.overrideId ?? ""}.`), status };
}

const CHECKS = [
  ({ parsed }: ObservedOverride): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  ({ namespace }: ObservedOverride): Verdict | undefined => ("verdict" in namespace ? namespace.verdict : undefined),

  // Whoever has it in the store keeps it: a newcomer must not take away what is in force.
  (observed: ObservedOverride): Verdict | undefined => {
    if (isOwn(observed)) return undefined;
    const rival = olderRival(observed.object, observed.claimants);
    if (rival === undefined) return undefined;
    return stalled("Conflict", `${labelOf(rival)} is older and is for the same identifier. Remove one of the two.`);
  },

  ({ stored, manager }: ObservedOverride): Verdict | undefined => {
    if (stored === undefined || stored.manager === manager) return undefined;
    const whose = stored.manager === undefined ? "was made elsewhere" : `is managed by ${stored.manager}`;
    const message = `The override for ${stored.identifier} (${stored.overrideId}) ${whose}. Delete it there, and this one takes its place.`;
    return stalled("Conflict", message);
  },
];

const isOwn = ({ stored, manager }: ObservedOverride): boolean => stored?.manager === manager;

const isSame = (stored: StoredOverride, wanted: Pick<StoredOverride, "limit" | "durationMs" | "async">): boolean =>
  stored.limit === wanted.limit && stored.durationMs === wanted.durationMs && stored.async === wanted.async;

const removal = (type: "delete" | "release", { namespaceId, identifier }: StoredOverride): OverrideAction => ({
  type,
  namespaceId,
  identifier,
});

function planDeletion(observed: ObservedOverride): Plan<OverrideAction> {
  const { object, stored, former } = observed;
  const type = deletionPolicyOf(object, "Delete") === "Delete" ? "delete" : "release";
  const own = [isOwn(observed) ? stored : undefined, former].filter((override) => override !== undefined);
  if (own.length === 0) return released;
  return {
    actions: own.map((override) => removal(type, override)),
    verdict: progressing("Progressing", "The override is being cleaned up."),
    status: { overrideId: own[0]?.overrideId, namespaceId: own[0]?.namespaceId },
  };
}
