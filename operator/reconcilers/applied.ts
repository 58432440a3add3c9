import type { Answer } from "../api/client.ts";
import type { Applied, Learned } from "./reconcile-object.ts";

/** What an action's answer means to the reconcile; `learn` picks the ids out of the data. */
export function toApplied<T>({ data, refusal }: Answer<T>, learn?: (data: T) => Learned): Applied {
  if (refusal !== undefined) return { refusal };
  return learn === undefined ? {} : { learned: learn(data as T) };
}
