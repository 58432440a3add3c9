import { formatDuration } from "../manifests/from-store/format-duration.ts";
import { checkFreshness } from "../policies/freshness.ts";
import type { CompiledPolicy } from "../policies/policy.ts";
import { said, type Undecided } from "./step.ts";

/**
 * Explains the policy's action for stale data, and whether the action applies now. `gatesAgeMs` is the age of the data at the gate that is
 * furthest behind: `Infinity` if a reporting gate has received no heartbeat yet, `undefined` if no gate reports.
 */
export function explainStale(
  { onStale }: Pick<CompiledPolicy, "onStale">,
  gatesAgeMs: number | undefined,
): Omit<Undecided, "sources"> {
  const after = formatDuration(onStale.afterMs);
  const does =
    onStale.action === "Deny"
      ? `a gate with data older than ${after} returns 503 for every key (onStale: Deny)`
      : `a gate with data older than ${after} serves cached keys, returns 503 for others, and after ${formatDuration(onStale.denyAfterMs)} returns 503 for every key (onStale: Serve)`;
  if (gatesAgeMs === undefined) return said("stale", true, `at most ${after}`, `Without updates, ${does}.`);
  const age = Number.isFinite(gatesAgeMs) ? shortAge(gatesAgeMs) : "unknown";
  const freshness = checkFreshness(onStale, gatesAgeMs);
  const observed = `${age}, at most ${after}`;
  if (freshness === "Fresh") return said("stale", true, observed, `Without updates, ${does}.`);
  const first = Number.isFinite(gatesAgeMs)
    ? `The data of a gate is ${age} old`
    : "The age of a gate's data is unknown";
  return said("stale", freshness === "Stale", observed, `${first}: ${does}.`);
}

/** Returns an age for display; an age of at least 1 s is rounded up to full seconds. */
const shortAge = (ms: number): string => formatDuration(ms < 1000 ? Math.ceil(ms) : Math.ceil(ms / 1000) * 1000);
