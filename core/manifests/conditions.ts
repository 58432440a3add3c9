import * as z from "zod";

/*
 * Status conditions, by the API conventions of Kubernetes and kstatus: `Ready` is always there; `Reconciling` and `Stalled`
 * only while they hold. The time of the last transition moves with the status alone.
 */

export const CONDITION_TYPES = [
  "Ready",
  "Reconciling",
  "Stalled",
  "Accepted",
  "Enforced",
  "Bypassable",
  "Stale",
] as const;

const REASON_LENGTH_MAX = 1024;
const MESSAGE_LENGTH_MAX = 32_768;

export const Condition = z
  .object({
    type: z.string().min(1).max(316).describe("The aspect that the condition tells about, such as Ready."),
    status: z.enum(["True", "False", "Unknown"]).describe("Whether the condition holds."),
    observedGeneration: z
      .int()
      .min(0)
      .optional()
      .describe("The generation of the spec that the condition was set for."),
    lastTransitionTime: z.iso.datetime().describe("When `status` last changed."),
    reason: z
      .string()
      .min(1)
      .max(REASON_LENGTH_MAX)
      .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
      .describe("Why, as a CamelCase constant."),
    message: z.string().max(MESSAGE_LENGTH_MAX).describe("Why, for a person."),
  })
  .describe("One aspect of the object's state.");
export type Condition = z.infer<typeof Condition>;

/** The conditions of a status; a list that is merged by `type`. */
export const Conditions = z
  .array(Condition)
  .max(16)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
  .describe("What the operator found: Ready, and Reconciling or Stalled while they hold.");

/** A condition as of now; a message that is too long for Kubernetes is cut. */
export function makeCondition({
  nowMs,
  message,
  ...rest
}: {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  observedGeneration?: number;
  nowMs: number;
}): Condition {
  // Kubernetes writes times of conditions in whole seconds.
  const lastTransitionTime = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  return { ...rest, message: message.slice(0, MESSAGE_LENGTH_MAX), lastTransitionTime };
}

/**
 * The conditions with this one set: in the place of that of its type, or at the end. While the status stays, so does the
 * time of the last transition; and when nothing changes at all, the very list comes back.
 */
export function setCondition(conditions: readonly Condition[], condition: Condition): readonly Condition[] {
  const at = conditions.findIndex(({ type }) => type === condition.type);
  const old = conditions[at];
  if (old === undefined) return [...conditions, condition];
  const set =
    old.status === condition.status ? { ...condition, lastTransitionTime: old.lastTransitionTime } : condition;
  const isSame =
    old.status === set.status &&
    old.reason === set.reason &&
    old.message === set.message &&
    old.observedGeneration === set.observedGeneration;
  return isSame ? conditions : conditions.with(at, set);
}

/** The conditions without that of this type: an abnormal one that no longer holds. The very list when there is none. */
export function removeCondition(conditions: readonly Condition[], type: string): readonly Condition[] {
  return conditions.some((condition) => condition.type === type)
    ? conditions.filter((condition) => condition.type !== type)
    : conditions;
}
