import { isKubeError } from "./kube-client.ts";
import type { WatchState } from "./watches.ts";

/** An API server sends a bookmark each minute, and a silent watch is opened again after 100 s. */
export const WATCH_DEADLINE_MS = 120_000;

/** Says for a person why this watch cannot be relied on; returns undefined when it can. */
export function watchProblem({ resource, namespace, ageMs, failure }: WatchState): string | undefined {
  const what = namespace === undefined ? resource : `${resource} in ${namespace}`;
  const because = failure === undefined ? "" : `: ${failure instanceof Error ? failure.message : String(failure)}`;
  // A missing right does not come back by waiting, and until it is granted every change is missed.
  if (isKubeError(failure, 401) || isKubeError(failure, 403)) return `${what} may not be watched${because}`;
  if (ageMs === undefined) return `${what} have not been listed yet${because}`;
  if (ageMs > WATCH_DEADLINE_MS) return `${what} have not been heard of for ${Math.round(ageMs / 1000)} s${because}`;
  return undefined;
}
