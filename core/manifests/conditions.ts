import * as z from "zod";

/*
 * Status conditions that follow the Kubernetes API conventions and kstatus: `Ready` is always present, `Reconciling` and `Stalled` only
 * while they are true. `lastTransitionTime` changes only if `status` changes.
 */

const REASON_LENGTH_MAX = 1024;
const MESSAGE_LENGTH_MAX = 32_768;

export const Condition = z
  .object({
    type: z.string().min(1).max(316).describe("Aspect that the condition describes, such as Ready."),
    status: z.enum(["True", "False", "Unknown"]).describe("Whether the condition is true."),
    observedGeneration: z.int().min(0).optional().describe("Generation of the spec to which the condition applies."),
    lastTransitionTime: z.iso.datetime().describe("Time of the last change of `status`."),
    reason: z
      .string()
      .min(1)
      .max(REASON_LENGTH_MAX)
      .regex(/^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$/)
      .describe("Reason as a CamelCase constant."),
    message: z.string().max(MESSAGE_LENGTH_MAX).describe("Reason for people."),
  })
  .describe("One aspect of the state of the object.");
export type Condition = z.infer<typeof Condition>;

/** Schema of a status's conditions, a list that Kubernetes merges by `type`. */
export const Conditions = z
  .array(Condition)
  .max(16)
  .meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] })
  .describe("Conditions. Ready is always present, Reconciling and Stalled only while true.");

/**
 * Status of an object that no operator has reconciled yet. It is the default in the CRD, so every object has it from the start, and an
 * object that no operator watches shows that it waits for one. Its time is a placeholder.
 */
export const PENDING_STATUS = {
  conditions: [
    {
      type: "Ready",
      status: "Unknown",
      reason: "Pending",
      message: "Waiting for the operator.",
      lastTransitionTime: "1970-01-01T00:00:00Z",
    },
  ],
} as const;

/** Returns a condition with the current time. Truncates a message that exceeds the Kubernetes limit. */
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
  // Kubernetes condition times have a resolution of seconds.
  const lastTransitionTime = `${new Date(nowMs).toISOString().slice(0, 19)}Z`;
  return { ...rest, message: message.slice(0, MESSAGE_LENGTH_MAX), lastTransitionTime };
}

/**
 * Replaces the condition of the same type, or appends it. Keeps `lastTransitionTime` while `status` is the same. Returns the same array if
 * nothing changes, so that the caller can skip the write.
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

/** Removes the condition of a type, for example when an abnormal state has ended. Returns the same array if it has no such condition. */
export function removeCondition(conditions: readonly Condition[], type: string): readonly Condition[] {
  return conditions.some((condition) => condition.type === type)
    ? conditions.filter((condition) => condition.type !== type)
    : conditions;
}
