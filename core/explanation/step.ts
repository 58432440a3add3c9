import type { KeyCheck } from "../verification/check-key.ts";
import type { Source, Step } from "./shapes.ts";

/* Building blocks of the steps of an explanation. */

/** Value that an explanation shows for a store that does not respond. */
export const UNANSWERED = "no answer";

/** A step without the flag that marks the deciding step. */
export type Undecided = Omit<Step, "decisive">;

export const said = (
  step: Step["step"],
  result: Step["result"] | boolean,
  observed: string,
  detail: string,
): Omit<Undecided, "sources"> => ({
  step,
  result: result === true ? "passed" : result === false ? "refused" : result,
  observed,
  detail,
});

export const keySource = ({ view: { key } }: Pick<KeyCheck, "view">, ageMs: number): Source => ({
  kind: "key",
  id: key.keyId,
  ...(key.name === undefined ? {} : { name: key.name }),
  ageMs,
});

export const requestSource: Source = { kind: "request", id: "", ageMs: 0 };

export const UNKNOWN_AGE = -1;
export const counterSource = (ageMs: number): Source => ({ kind: "counter", id: "", ageMs });
