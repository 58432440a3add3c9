import { conflictOf, ownOf } from "../claims.ts";
import { planCleanUp } from "../clean-up.ts";
import { blocked, firstOf, type Plan, progressing, ready, stalled, type Verdict } from "../plan.ts";
import { invalid } from "../spec.ts";
import type { ObservedNamespace } from "./gather.ts";

export type NamespaceAction =
  | { readonly type: "create" | "adopt"; readonly name: string }
  | { readonly type: "delete" | "release"; readonly namespaceId: string };

/** Plans the actions that store the rate-limit namespace. */
export function planNamespace(observed: ObservedNamespace): Plan<NamespaceAction> {
  const { object, parsed, stored } = observed;
  const own = ownOf(observed);
  const status = { namespaceId: own?.namespaceId };
  if (object.metadata.deletionTimestamp !== undefined) {
    return planCleanUp(object, {
      own: [own],
      noun: "rate-limit namespace",
      status,
      removal: (type, { namespaceId }): NamespaceAction => ({ type, namespaceId }),
    });
  }
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) return blocked(verdict, status);
  if (own !== undefined) {
    return { actions: [], verdict: ready(`The rate-limit namespace is stored as ${own.namespaceId}.`), status };
  }
  const name = parsed.spec?.name ?? "";
  const type = stored === undefined ? "create" : "adopt";
  return {
    actions: [{ type, name }],
    verdict: progressing("Progressing", "The rate-limit namespace is being created."),
    status,
  };
}

const CHECKS = [
  ({ parsed }: ObservedNamespace): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  // The Kubernetes API server rejects such a spec, but a directory may contain one.
  (observed: ObservedNamespace): Verdict | undefined => {
    const own = ownOf(observed);
    if (own === undefined || own.name === observed.parsed.spec?.name) return undefined;
    const message = `spec.name: a rate-limit namespace cannot be renamed; the stored name is ${own.name}. Restore the name, or create another object.`;
    return stalled("InvalidSpec", message);
  },

  ({ parsed: { spec }, ...claimed }: ObservedNamespace): Verdict | undefined =>
    conflictOf(claimed, {
      competitor: (competitor) =>
        `${competitor} is older and has the same spec.name. Remove one of the two objects; to share the namespace, use its allowedNamespaces.`,
      managed: ({ name }, manager) =>
        `The rate-limit namespace ${name} is managed by ${manager}. Use that namespace, or choose another spec.name.`,
      // Both values of `spec.adopt` have the same result, because a namespace has no settings that could differ from the spec.
      unmanaged: ({ name }) => ({
        adopt: spec?.adopt,
        unasked: `The rate-limit namespace ${name} already exists and is unmanaged. Set spec.adopt to Match to adopt it, or choose another spec.name.`,
      }),
    }),
];
