import type { ExplainedKey, Step } from "../core/explanation/shapes.ts";
import { UNANSWERED } from "../core/explanation/step.ts";
import { formatDuration } from "../core/manifests/from-store/format-duration.ts";
import { type Fields, printable } from "./fields.ts";
import type { Outcome } from "./outcomes.ts";
import { formatTable } from "./table.ts";

/* Terminal output that explains a verification: the outcome, the decisive step, and one line per step. */

export interface ShownExplanation extends Pick<ExplainedKey, "steps"> {
  readonly code: Outcome;
  readonly allowed: boolean;
  readonly status: number;
  readonly mode?: string | undefined;
  readonly retryAfter?: number | undefined;
}

const SECOND_MS = 1000;

const MARKS: Readonly<Record<Step["result"], string>> = { passed: "✓", refused: "✗", skipped: "-" };

const STEP_FIELDS: Fields<Step> = [
  { name: "result", title: "", value: ({ result }) => MARKS[result] },
  { name: "step", title: "step", value: ({ step }) => step },
  { name: "observed", title: "observed", value: ({ observed }) => (observed === "" ? null : observed), shrinks: true },
  { name: "source", title: "source", value: sourceText, shrinks: true },
  { name: "age", title: "age", value: ageText },
];

/** Returns the lines of an explanation. `width` is the width of the terminal. */
export function formatExplanation(shown: ShownExplanation, width: number | undefined): string[] {
  const { code, allowed, status, mode, retryAfter, steps } = shown;
  const audited = allowed && mode === "Audit" && code !== "VALID" && code !== "ANONYMOUS";
  const head = [
    `${allowed ? "✓" : "✗"} ${code}`,
    audited ? "allowed, because the policy is in Audit mode" : `${status} at a gate`,
    ...(retryAfter === undefined ? [] : [`retry after ${formatDuration(retryAfter * SECOND_MS)}`]),
  ].join(", ");
  const deciding = steps.find(({ decisive }) => decisive);
  return [
    printable(head),
    ...(deciding === undefined ? [] : [`  ${deciding.step}: ${printable(deciding.detail)}`]),
    "",
    ...formatTable(STEP_FIELDS, steps, width),
    ...steps
      .filter((step) => step.step === "stale" || isUnanswered(step))
      .flatMap(({ detail }) => ["", printable(detail)]),
  ];
}

/**
 * Returns whether Redis or Postgres did not respond in this step. The explanation shows such a step even if it is not decisive, because it
 * is the reason why the gate used its fallback.
 */
const isUnanswered = ({ observed, result, decisive }: Step): boolean =>
  observed === UNANSWERED && result === "skipped" && !decisive;

function sourceText({ sources }: Step): string {
  return sources.map(({ kind, id, name }) => [kind, name ?? id].filter(Boolean).join(" ")).join(", ");
}

/** Returns the age of the oldest source of a step. */
function ageText({ sources }: Step): string {
  const agesMs = sources.map(({ ageMs }) => ageMs);
  if (agesMs.some((ageMs) => ageMs < 0)) return "?";
  const oldestMs = Math.max(0, ...agesMs);
  return formatDuration(oldestMs < SECOND_MS ? oldestMs : Math.ceil(oldestMs / SECOND_MS) * SECOND_MS);
}
