import type { Answer } from "../api/client.ts";
import type { Applied } from "./reconcile-object.ts";

/** What an action's answer means to the reconcile. What was made is not learned from it: the next look finds it in the store. */
export const toApplied = ({ refusal }: Answer<unknown>): Applied => (refusal === undefined ? {} : { refusal });
