import { parseDuration } from "../../../core/manifests/duration.ts";
import type { RatelimitOverrideSpec } from "../../../core/manifests/ratelimit-override.ts";
import { conflictOf, ownOf } from "../claims.ts";
import { planCleanUp } from "../clean-up.ts";
import { blocked, firstOf, type Plan, progressing, ready, type Verdict } from "../plan.ts";
import { invalid } from "../spec.ts";
import type { ObservedOverride, StoredOverride } from "./gather.ts";

export type OverrideAction =
  | {
      readonly type: "set";
      readonly namespaceId: string;
      readonly identifier: string;
      readonly limit: number;
      readonly durationMs: number;
      readonly async: boolean;
      /** Whether to adopt an unmanaged override, which this object orphaned or `spec.adopt` covers. */
      readonly adopt?: true;
    }
  | { readonly type: "delete" | "release"; readonly namespaceId: string; readonly identifier: string };

/** Plans the actions that store the override of the manifest. */
export function planOverride(observed: ObservedOverride): Plan<OverrideAction> {
  const { object, parsed, namespace, stored, former } = observed;
  const own = ownOf(observed);
  const { overrideId, namespaceId } = own ?? former ?? {};
  const status = { overrideId, namespaceId };
  if (object.metadata.deletionTimestamp !== undefined) {
    return planCleanUp(object, { own: [own, former], noun: "override", status, removal });
  }
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) return blocked(verdict, status);
  const { spec } = parsed;
  if (spec === undefined || !("namespaceId" in namespace)) throw new Error("an unresolved override passed the checks");
  const desired = {
    namespaceId: namespace.namespaceId,
    identifier: spec.identifier,
    ...settingsOf(spec),
  };
  const actions: OverrideAction[] = [
    ...(former === undefined ? [] : [removal("delete", former)]),
    ...(own !== undefined && isSame(own, desired) ? [] : [setting(desired, stored)]),
  ];
  if (actions.length > 0)
    return { actions, verdict: progressing("Progressing", "The override is being written."), status };
  return { actions, verdict: ready(`The override is stored as ${stored?.overrideId ?? ""}.`), status };
}

type Setting = Extract<OverrideAction, { readonly type: "set" }>;

const setting = (desired: Omit<Setting, "type" | "adopt">, stored: StoredOverride | undefined): Setting => ({
  type: "set",
  ...desired,
  // Adopts an unmanaged override. The preceding checks have rejected overrides that this object may not adopt.
  ...(stored !== undefined && stored.manager === undefined ? { adopt: true } : {}),
});

const CHECKS = [
  ({ parsed }: ObservedOverride): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  ({ namespace }: ObservedOverride): Verdict | undefined => ("verdict" in namespace ? namespace.verdict : undefined),

  ({ parsed: { spec }, ...claimed }: ObservedOverride): Verdict | undefined =>
    conflictOf(claimed, {
      competitor: (competitor) => `${competitor} is older and has the same identifier. Remove one of the two objects.`,
      managed: (stored, manager) =>
        `${theOverride(stored)} is managed by ${manager}. Delete that object, so that this one replaces it.`,
      unmanaged: (stored) => ({
        adopt: spec?.adopt,
        unasked: `${theOverride(stored)} already exists and is unmanaged. Set spec.adopt to Match or Override to adopt it, or delete it.`,
        differs:
          spec === undefined || isSame(stored, settingsOf(spec))
            ? undefined
            : `${theOverride(stored)} already exists, is unmanaged, and differs from this spec. Make the spec equal, or set spec.adopt to Override.`,
      }),
    }),
];

const theOverride = ({ identifier, overrideId }: StoredOverride): string =>
  `The override for ${identifier} (${overrideId})`;

const settingsOf = ({ limit, duration, async }: RatelimitOverrideSpec) => ({
  limit,
  durationMs: parseDuration(duration),
  async,
});

const isSame = (stored: StoredOverride, desired: Pick<StoredOverride, "limit" | "durationMs" | "async">): boolean =>
  stored.limit === desired.limit && stored.durationMs === desired.durationMs && stored.async === desired.async;

const removal = (type: "delete" | "release", { namespaceId, identifier }: StoredOverride): OverrideAction => ({
  type,
  namespaceId,
  identifier,
});
