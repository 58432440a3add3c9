import type { LimitCharge, LimitOutcome } from "../charges.ts";
import { formatDuration } from "../manifests/from-store/format-duration.ts";
import { hasSucceeded } from "../policies/failed-attempts.ts";
import type { Step } from "./shapes.ts";
import { counterSource, said, UNANSWERED, UNKNOWN_AGE } from "./step.ts";

/**
 * Explains whether the key may be tried from the client address. `outcomes` has the outcomes of the failure counter and of the success
 * counter. If the counters do not respond, `outcomes` is `undefined`, and a gate uses its own counts.
 */
export function explainAttempts(
  { identifier, limit, durationMs }: LimitCharge,
  outcomes: readonly [LimitOutcome | undefined, LimitOutcome | undefined] | undefined,
): Step {
  const [failure, success] = outcomes ?? [];
  if (failure === undefined) {
    const detail =
      "The failed attempts of the address cannot be read now. Each gate uses those that it has counted itself.";
    return {
      ...said("attempts", "skipped", UNANSWERED, detail),
      sources: [counterSource(UNKNOWN_AGE)],
      decisive: false,
    };
  }
  const used = failure.passed ? limit - failure.remaining : limit;
  const isSpared = !failure.passed && hasSucceeded(success);
  const counted = `${used} of ${limit} failed attempts from ${identifier} in ${formatDuration(durationMs)}`;
  const detail = isSpared
    ? `${counted}, but this key succeeded from there within the last hour.`
    : `${counted}${failure.passed ? "." : ", so its keys are not looked up."}`;
  const isAllowed = failure.passed || isSpared;
  const step = said("attempts", isAllowed, `${used}/${limit}`, detail);
  return { ...step, sources: [counterSource(0)], decisive: !isAllowed };
}
