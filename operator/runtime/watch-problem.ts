import { isKubeError } from "./kube-client.ts";
import type { WatchState } from "./watches.ts";

/** An API server sends a bookmark every minute, and a silent watch is reopened after 100 s. */
export const WATCH_DEADLINE_MS = 120_000;

/** Returns a message that explains why this watch is unreliable; `undefined` if it is reliable. */
export function watchProblem({ resource, namespace, ageMs, failure }: WatchState): string | undefined {
  const what = namespace === undefined ? resource : `${resource} in ${namespace}`;
  const because = failure === undefined ? "" : `: ${failure instanceof Error ? failure.message : String(failure)}`;
  // A missing permission does not resolve itself, and every change is missed until it is granted.
  if (isKubeError(failure, 401) || isKubeError(failure, 403)) return `${what} may not be watched${because}`;
  if (ageMs === undefined) return `${what} have not been listed yet${because}`;
  if (ageMs > WATCH_DEADLINE_MS) return `${what} have not been heard of for ${Math.round(ageMs / 1000)} s${because}`;
  return undefined;
}
