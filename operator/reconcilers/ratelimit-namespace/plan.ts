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
import type { ObservedNamespace } from "./gather.ts";

export type NamespaceAction =
  | { readonly type: "create" | "adopt"; readonly name: string }
  | { readonly type: "delete" | "release"; readonly namespaceId: string };

/** What is to be done so that the store holds the rate-limit namespace. */
export function planNamespace(observed: ObservedNamespace): Plan<NamespaceAction> {
  const { object, parsed, stored } = observed;
  if (object.metadata.deletionTimestamp !== undefined) return planDeletion(observed);
  const own = isOwn(observed) ? stored : undefined;
  const status = { namespaceId: own?.namespaceId };
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) {
    return {
      actions: [],
      verdict,
      status,
      ...(verdict.reason === "Conflict" ? { requeueAfterMs: CONFLICT_REQUEUE_MS } : {}),
    };
  }
  if (own !== undefined) {
    return { actions: [], verdict: ready(`The rate-limit namespace is in the store as ${own.namespaceId}.`), status };
  }
  const name = parsed.spec?.name ?? "";
  const type = stored === undefined ? "create" : "adopt";
  return {
    actions: [{ type, name }],
    verdict: progressing("Progressing", "The rate-limit namespace is being made."),
    status,
  };
}

const CHECKS = [
  ({ parsed }: ObservedNamespace): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  // The API server forbids it; a directory can do it.
  (observed: ObservedNamespace): Verdict | undefined => {
    const { stored, parsed } = observed;
    if (!isOwn(observed) || stored?.name === parsed.spec?.name) return undefined;
    const message = `spec.name: a rate-limit namespace cannot be renamed; it is ${stored?.name} in the store. Set it back, or make another object.`;
    return stalled("InvalidSpec", message);
  },

  // Whoever has it in the store keeps it: a newcomer must not take away what is in force.
  (observed: ObservedNamespace): Verdict | undefined => {
    if (isOwn(observed)) return undefined;
    const rival = olderRival(observed.object, observed.claimants);
    if (rival === undefined) return undefined;
    const message = `${labelOf(rival)} is older and has the same spec.name. Remove one of the two; others may share it through its allowedNamespaces.`;
    return stalled("Conflict", message);
  },

  ({ stored, manager }: ObservedNamespace): Verdict | undefined =>
    stored?.manager === undefined || stored.manager === manager
      ? undefined
      : stalled(
          "Conflict",
          `The rate-limit namespace ${stored.name} is managed by ${stored.manager}. Use that one, or choose another spec.name.`,
        ),

  ({ parsed: { spec }, stored }: ObservedNamespace): Verdict | undefined =>
    // It has nothing that could differ from the spec, so that both ways of adopting come to the same.
    spec === undefined || stored === undefined || stored.manager !== undefined || spec.adopt !== undefined
      ? undefined
      : stalled(
          "Conflict",
          `The rate-limit namespace ${stored.name} was made elsewhere. Set spec.adopt to match to take it over, or choose another spec.name.`,
        ),
];

const isOwn = ({ stored, manager }: ObservedNamespace): boolean => stored?.manager === manager;

function planDeletion({ object, stored, manager }: ObservedNamespace): Plan<NamespaceAction> {
  if (stored === undefined || stored.manager !== manager) return released;
  const { namespaceId } = stored;
  const type = deletionPolicyOf(object, "Delete") === "Delete" ? "delete" : "release";
  const verdict = progressing("Progressing", "The rate-limit namespace is being cleaned up.");
  return { actions: [{ type, namespaceId }], verdict, status: { namespaceId } };
}
