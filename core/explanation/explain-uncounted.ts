import { said, UNANSWERED, type Undecided } from "./said.ts";
import type { SeenUncounted } from "./shapes.ts";

/* What is done where the shared counters do not answer, in words. An explanation knows the rule, and no pod's own count. */

export interface UncountedStep {
  readonly uncounted: SeenUncounted;
  /** Whether a gate asks, by its policy; else it is a call of keys.verifyKey. */
  readonly isGate: boolean;
}

const AWAY = "The shared counters were not reached.";

export function uncountedLimits({ uncounted, isGate }: UncountedStep): Omit<Undecided, "sources"> {
  const refuses = uncounted.alone?.passed === false;
  return said(
    "limits",
    refuses ? false : "skipped",
    UNANSWERED,
    `${AWAY} ${isGate ? atGate(uncounted) : ofCall(uncounted)}`,
  );
}

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
      return `The policy's onCounterFailure is Local with the budget 1/pods, so each gate counts in its own pod, from nothing, up to its share of the limit. How many pods share it is not known here either. ${byOwnCount(uncounted, GATE)}`;
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

export function uncountedCredits({ uncounted, isGate }: UncountedStep): Omit<Undecided, "sources"> {
  const { onCreditFailure } = uncounted;
  const away = "The counter of its credits was not reached.";
  const then = !isGate
    ? "A call that spends credits is then not decided."
    : onCreditFailure === "Deny"
      ? "The policy's onCreditFailure is Deny, so a gate does not decide the request: 503."
      : "The policy's onCreditFailure is Allow, so a gate lets the request through, and spends none.";
  return said("credits", "skipped", UNANSWERED, `${away} ${then}`);
}
