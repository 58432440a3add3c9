import type { Random } from "./random.ts";

/*
 * Which faults happen, and when. The plan depends only on the seed and the options. What the parts do meanwhile does not, so two
 * runs of a seed have the same faults at the same times and otherwise differ.
 */

export const FAULT_KINDS = [
  "kill-api-server",
  "stop-api-server",
  "kill-sidecar",
  "stop-sidecar",
  "flush-redis",
  "restart-redis-with-aof",
  "restart-redis-empty",
  "restart-redis-from-snapshot",
  "stop-redis",
  "abort-postgres",
  "bulk-change",
  "attack",
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** Faults that a tenant causes for itself. They do not excuse effects on others. */
export const TENANT_FAULTS: ReadonlySet<FaultKind> = new Set(["bulk-change", "attack"]);

export interface PlannedFault {
  /** Since the start of the load. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** `leader`: the api-server that relays at that time. A number from 0 to 1: a place in the list of such parts. */
  readonly target: "leader" | number;
  /** How long the part is down, or the attack continues; for a snapshot, its age when it is restored. */
  readonly forMs: number;
}

export interface Plan {
  readonly durationMs: number;
  readonly faults: readonly PlannedFault[];
}

/** How long a fault may last, ms. An api-server is stopped for longer than another one needs to take over as relay. */
const LASTS: Readonly<Record<FaultKind, readonly [min: number, max: number]>> = {
  "kill-api-server": [100, 3_000],
  "stop-api-server": [4_000, 40_000],
  "kill-sidecar": [100, 2_000],
  "stop-sidecar": [1_000, 6_000],
  "flush-redis": [0, 0],
  "restart-redis-with-aof": [0, 2_000],
  "restart-redis-empty": [0, 2_000],
  "restart-redis-from-snapshot": [1_000, 5_000],
  "stop-redis": [500, 4_000],
  "abort-postgres": [0, 3_000],
  "bulk-change": [0, 0],
  attack: [5_000, 15_000],
};

const FIRST_AT_MS = 2_000;
const GAP_MS_MAX = 5_000;
/** The pause between two rounds of a longer run: long enough for all effects to end. */
const CALM_MS = 60_000;

/** Deals the kinds in rounds, each in another order, so that each comes equally often. Between two rounds there is a pause. */
export function makePlan(
  random: Random,
  { durationMs, kinds }: { durationMs: number; kinds: readonly FaultKind[] },
): Plan {
  const faults: PlannedFault[] = [];
  if (kinds.length === 0) return { durationMs, faults };
  // A short run still has each kind once.
  const gapMs = Math.min(GAP_MS_MAX, (durationMs - FIRST_AT_MS) / (kinds.length + 1));
  let round: FaultKind[] = [];
  for (let atMs = FIRST_AT_MS; atMs < durationMs - gapMs; atMs += gapMs * (0.5 + random.next())) {
    if (round.length === 0) {
      if (faults.length > 0) atMs += CALM_MS;
      round = random.shuffled(kinds);
    }
    if (atMs >= durationMs - gapMs) break;
    const kind = round.pop() as FaultKind;
    const [min, max] = LASTS[kind];
    const target = kind.endsWith("api-server") && random.chance(0.6) ? "leader" : random.next();
    const forMs = Math.min(random.whole(min, max), Math.max(0, Math.round(durationMs - atMs)));
    faults.push({ atMs: Math.round(atMs), kind, target, forMs });
  }
  return { durationMs, faults };
}
