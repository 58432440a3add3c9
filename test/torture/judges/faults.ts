import type { FaultEntry } from "../journal.ts";
import { TENANT_FAULTS } from "../plan.ts";

/** After a fault everything is as promised again within the time that a change may take. */
export const MEND_MS = 30_000;

const OF_TENANTS: ReadonlySet<FaultEntry["kind"]> = TENANT_FAULTS;

/** From a fault to where what it did is mended. */
export interface Spell {
  readonly fromMs: number;
  readonly toMs: number;
}

/** What the shared store forgets, or goes back from. */
const LOSSES: ReadonlySet<FaultEntry["kind"]> = new Set([
  "flush-redis",
  "restart-redis-empty",
  "restart-redis-from-snapshot",
]);

export const happened = (faults: readonly FaultEntry[]): FaultEntry[] =>
  faults.filter(({ skipped }) => skipped === undefined);

/** What a tenant does to itself excuses nothing that the others meet. */
export const excusing = (faults: readonly FaultEntry[]): FaultEntry[] =>
  happened(faults).filter(({ kind }) => !OF_TENANTS.has(kind));

export const losses = (faults: readonly FaultEntry[]): FaultEntry[] =>
  happened(faults).filter(({ kind }) => LOSSES.has(kind));

/** Faults of these kinds, each with `mendMs` after its end; those that touch one another are one spell. */
export function spellsOf(
  faults: readonly FaultEntry[],
  { mendMs, isMeant = () => true }: { mendMs: number; isMeant?: (fault: FaultEntry) => boolean },
): Spell[] {
  const spells: Array<{ fromMs: number; toMs: number }> = [];
  const sorted = happened(faults)
    .filter(isMeant)
    .sort((a, b) => a.startedMs - b.startedMs);
  for (const { startedMs, endedMs } of sorted) {
    const last = spells.at(-1);
    const toMs = endedMs + mendMs;
    if (last !== undefined && startedMs <= last.toMs) last.toMs = Math.max(last.toMs, toMs);
    else spells.push({ fromMs: startedMs, toMs });
  }
  return spells;
}

/** True when the two meet. */
export const touches = (spells: readonly Spell[], fromMs: number, toMs: number): boolean =>
  spells.some((spell) => spell.fromMs <= toMs && fromMs <= spell.toMs);
