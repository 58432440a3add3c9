import { isDeepStrictEqual } from "node:util";
import * as z from "zod";
import {
  type Condition,
  Conditions,
  makeCondition,
  removeCondition,
  setCondition,
} from "../../core/manifests/conditions.ts";
import type { ManifestEvent, ManifestObject } from "../source/contract.ts";
import type { FurtherCondition, Verdict } from "./plan.ts";

const Previous = z.object({
  conditions: Conditions.default([]),
  observedGeneration: z.int().optional(),
});

export interface StatusInput {
  readonly object: ManifestObject;
  readonly verdict: Verdict;
  readonly conditions: readonly FurtherCondition[];
  readonly own: object;
  readonly nowMs: number;
}

export interface NewStatus {
  /** New status; `undefined` if it is equal to the current one. */
  readonly status?: object;
  /** Events for the transitions of Ready and of conditions with `alerts`, one per transition. */
  readonly events: readonly ManifestEvent[];
}

/** Computes the new status from the verdict and the previous status, according to the conventions of kstatus. */
export function statusOf({ object, verdict, conditions: further, own, nowMs }: StatusInput): NewStatus {
  const previous = previousOf(object);
  const observedGeneration = object.metadata.generation;
  const at = { observedGeneration, nowMs };
  let conditions: readonly Condition[] = previous.conditions;
  const set = (condition: Omit<Condition, "lastTransitionTime">) => {
    conditions = setCondition(conditions, makeCondition({ ...condition, ...at }));
  };
  const { state, reason, message } = verdict;
  set({ type: "Ready", status: state === "Ready" ? "True" : "False", reason, message });
  for (const [type, holds] of [
    ["Reconciling", state === "Progressing"],
    ["Stalled", state === "Stalled"],
  ] as const) {
    if (holds) set({ type, status: "True", reason, message });
    else conditions = removeCondition(conditions, type);
  }
  for (const { alerts: _, note: __, ...condition } of further) set(condition);

  const known = Object.fromEntries(Object.entries(own).filter(([, value]) => value !== undefined));
  const status = { ...known, observedGeneration, conditions };
  const events = [transition(previous.conditions, verdict), ...further.map((one) => alert(previous.conditions, one))];
  if (isDeepStrictEqual(object.status, status)) return { events: [] };
  return { status, events: events.filter((event) => event !== undefined) };
}

/**
 * Computes the status while the API is unavailable. If the API is unreachable, an object stays ready, unless an active resource is known to
 * be wrong. If the API rejects the root key, the object becomes unready, because the key remains rejected until somebody replaces it.
 */
export function whileUnavailable(
  object: ManifestObject,
  { message, isKeyRefused = false }: { message: string; isKeyRefused?: boolean },
): { verdict: Verdict; keepReady: boolean } {
  return {
    verdict: { state: "Progressing", reason: "ApiUnavailable", message },
    keepReady: !isKeyRefused && wasReady(object),
  };
}

/** Returns whether the object's status shows that it matched the database at this generation. */
export function wasReady(object: ManifestObject): boolean {
  return previousOf(object).conditions.some(
    ({ type, status, observedGeneration }) =>
      type === "Ready" && status === "True" && observedGeneration === object.metadata.generation,
  );
}

/** Returns whether the object's status shows that it could not be applied at this generation. */
export function isHeld(object: ManifestObject): boolean {
  return previousOf(object).conditions.some(
    ({ type, observedGeneration }) => type === "Stalled" && observedGeneration === object.metadata.generation,
  );
}

/** Returns the status fields specific to the kind. While the database is not read, they are preserved, especially the ids. */
export function ownStatus({ status }: ManifestObject): object {
  const { conditions: _, observedGeneration: __, ...own } = (status ?? {}) as Record<string, unknown>;
  return own;
}

/** Returns the status with the condition Reconciling added and Ready unchanged. */
export function withReconciling(object: ManifestObject, verdict: Verdict, nowMs: number): object | undefined {
  const { conditions } = previousOf(object);
  const { reason, message } = verdict;
  const observedGeneration = object.metadata.generation;
  const condition = makeCondition({ type: "Reconciling", status: "True", reason, message, observedGeneration, nowMs });
  const changed = setCondition(conditions, condition);
  return changed === conditions ? undefined : { ...(object.status as object), conditions: changed };
}

/** Returns the conditions in the object's current status. They are used only to report transitions, never for decisions. */
export const conditionsOf = (object: ManifestObject): readonly Condition[] => previousOf(object).conditions;

function previousOf({ status }: ManifestObject): z.output<typeof Previous> {
  const parsed = Previous.safeParse(status ?? {});
  // A status that another writer has made invalid counts as empty and is overwritten.
  return parsed.success ? parsed.data : { conditions: [] };
}

function transition(previous: readonly Condition[], { state, reason, message }: Verdict): ManifestEvent | undefined {
  const old = previous.find(({ type }) => type === "Ready");
  const status = state === "Ready" ? "True" : "False";
  if (old?.status === status && old.reason === reason) return undefined;
  return { type: state === "Stalled" ? "Warning" : "Normal", reason, action: "Reconcile", note: message };
}

function alert(previous: readonly Condition[], condition: FurtherCondition): ManifestEvent | undefined {
  const { type, status, reason, message, alerts, note } = condition;
  const known = previous.find((one) => one.type === type);
  if (note !== undefined && known?.reason !== reason) return { type: "Warning", reason, action: type, note };
  const was = known?.status === "True";
  if (alerts !== true || was === (status === "True")) return undefined;
  return { type: status === "True" ? "Warning" : "Normal", reason, action: type, note: message };
}
