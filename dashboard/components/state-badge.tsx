import type { ReactNode } from "react";
import { outcomeInWords } from "../usage/series.ts";
import { Badge, type BadgeKind } from "./badge.tsx";
import { outcomeMark } from "./plot-marks.ts";

/* One word and one color per state, on all pages: enabled is green, disabled gray, expired amber, over a limit red. */

const STATES = { enabled: "good", disabled: "off", expired: "warn", deleted: "off" } as const;

/** Shows the state of a key, root key or workspace. */
export const StateOf = ({ state }: { state: keyof typeof STATES }): ReactNode => (
  <Badge kind={STATES[state]}>{state}</Badge>
);

/** Shows whether a listed key is enabled. The key's details also cover its limits and its API. */
export function StateBadge({
  enabled,
  expires,
  nowMs,
}: {
  enabled: boolean;
  expires: number | undefined;
  nowMs: number;
}): ReactNode {
  if (!enabled) return <StateOf state="disabled" />;
  return <StateOf state={expires !== undefined && nowMs > expires ? "expired" : "enabled"} />;
}

/** Shows whether a request was within a rate limit. */
export const LimitBadge = ({ passed }: { passed: boolean }): ReactNode => (
  <Badge kind={passed ? "good" : "bad"}>{passed ? "within the limit" : "over the limit"}</Badge>
);

const OUTCOME_KINDS: Readonly<Record<string, BadgeKind>> = {
  VALID: "good",
  RATE_LIMITED: "bad",
  DISABLED: STATES.disabled,
  EXPIRED: STATES.expired,
};

/** Shows the outcome of a verification in the color that it has in charts. */
export function OutcomeBadge({ outcome }: { outcome: string }): ReactNode {
  const kind = OUTCOME_KINDS[outcome];
  return (
    <Badge kind={kind ?? "plain"} color={kind === undefined ? outcomeMark(outcome).color : undefined} title={outcome}>
      {outcomeInWords(outcome)}
    </Badge>
  );
}
