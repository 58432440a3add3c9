import type { RecordedVerification, SeenUncounted, Source } from "./shapes.ts";
import { said, UNANSWERED, type Undecided } from "./step.ts";

/*
 * Explains what happens while the shared counters do not respond. The explanation describes the configured fallback. It ignores the counts
 * that a pod keeps by itself.
 */

/** `policy` is the policy of the verifying gate; `undefined` for a call of keys.verifyKey. */
export interface UncountedStep extends Pick<RecordedVerification, "policy"> {
  readonly uncounted: SeenUncounted;
}

const AWAY = "The shared counters were not reached.";

/** Returns the step for the limits. Its sources are the policy and `sources`. */
export function uncountedLimits({ uncounted, policy }: UncountedStep, sources: readonly Source[]): Undecided {
  const result = uncounted.alone?.passed === false ? false : "skipped";
  const detail = `${AWAY} ${policy === undefined ? ofCall(uncounted) : atGate(uncounted)}`;
  return { ...said("limits", result, UNANSWERED, detail), sources: [...ofPolicy(policy), ...sources] };
}

/** Returns the step for the credits in the same form as `uncountedLimits`. */
export function uncountedCredits({ uncounted, policy }: UncountedStep, sources: readonly Source[]): Undecided {
  const away = "The counter of its credits was not reached.";
  const then =
    policy === undefined
      ? "A call that spends credits is then not decided."
      : uncounted.onCreditFailure === "Deny"
        ? "The policy's onCreditFailure is Deny, so a gate does not decide the request: 503."
        : "The policy's onCreditFailure is Allow, so a gate lets the request through, and spends none.";
  const step = said("credits", "skipped", UNANSWERED, `${away} ${then}`);
  return { ...step, sources: [...ofPolicy(policy), ...sources] };
}

const ofPolicy = (policy: UncountedStep["policy"]): Source[] =>
  policy === undefined ? [] : [{ kind: "policy", ...policy }];

function atGate(uncounted: SeenUncounted): string {
  if (uncounted.isAsync)
    return `Each gate decides these limits in its own pod in any case (async). ${byOwnCount(uncounted, GATE)}`;
  switch (uncounted.onCounterFailure) {
    case "Deny":
      return "The policy's onCounterFailure is Deny, so a gate does not decide the request: 503.";
    case "Allow":
      return "The policy's onCounterFailure is Allow, so a gate lets the request through uncounted.";
    case "Local":
      return `The policy's onCounterFailure is Local, so each gate counts in its own pod, from nothing. ${byOwnCount(uncounted, GATE)}`;
    case "LocalShare":
      return `The policy's onCounterFailure is Local with the budget PerPod, so each gate counts in its own pod, from nothing, up to its share of the limit. How many pods share it is not known here either. ${byOwnCount(uncounted, GATE)}`;
  }
}

function ofCall(uncounted: SeenUncounted): string {
  if (uncounted.onCounterFailure === "Deny") {
    return "A call that also spends credits is then not decided, and counts nothing.";
  }
  return `keys.verifyKey then counts in the process of the api-server. ${byOwnCount(uncounted, SERVER)}`;
}

interface Counter {
  readonly it: string;
  readonly refusal: string;
}
const GATE: Counter = { it: "a pod", refusal: "429" };
const SERVER: Counter = { it: "a process", refusal: "RATE_LIMITED" };

function byOwnCount({ alone }: SeenUncounted, { it, refusal }: Counter): string {
  if (alone?.passed === false) return `The request costs more than a whole limit, so it is refused: ${refusal}.`;
  return `What ${it} has counted is known to it alone and is taken for nothing here: the request passes while that count has room, and is refused after that: ${refusal}.`;
}
