import type { Random } from "./random.ts";

/*
 * What is broken, and when. It follows from the seed and the options alone; what the parts do meanwhile does not, so two
 * runs of a seed break the same things at the same times and are otherwise two runs.
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

/** What a tenant does to itself. It excuses nothing that others meet. */
export const TENANT_FAULTS: ReadonlySet<FaultKind> = new Set(["bulk-change", "attack"]);

export interface PlannedFault {
  /** Since the start of the load. */
  readonly atMs: number;
  readonly kind: FaultKind;
  /** `leader`: the api-server that relays at that time. A number from 0 to 1: a place in the list of such parts. */
  readonly target: "leader" | number;
  /** How long the part is away, or the attack goes on; of a snapshot, how old it is when it comes back. */
  readonly forMs: number;
}

export interface Plan {
  readonly durationMs: number;
  readonly faults: readonly PlannedFault[];
}

/** How long a fault may last, ms. An api-server stands still for longer than another may take to relay in its place. */
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
/** Between two rounds of a run that has several: long enough to see that everything mends. */
const CALM_MS = 60_000;

/** Deals the kinds in rounds, each round in another order, so that each comes as often as the others. Between two it is calm. */
export function makePlan(
  random: Random,
  { durationMs, kinds }: { durationMs: number; kinds: readonly FaultKind[] },
): Plan {
  const faults: PlannedFault[] = [];
  if (kinds.length === 0) return { durationMs, faults };
  // Short runs still meet each kind once.
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
