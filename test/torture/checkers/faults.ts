import type { FaultEntry } from "../journal.ts";
import { TENANT_FAULTS } from "../plan.ts";

/** After a fault every promise holds again within the time that a change may take. */
export const MEND_MS = 30_000;

const OF_TENANTS: ReadonlySet<FaultEntry["kind"]> = TENANT_FAULTS;

/** From the start of a fault until its effects are over. */
export interface Spell {
  readonly fromMs: number;
  readonly toMs: number;
}

/** Faults after which the shared store has lost data, or has gone back in time. */
const LOSSES: ReadonlySet<FaultEntry["kind"]> = new Set([
  "flush-redis",
  "restart-redis-empty",
  "restart-redis-from-snapshot",
]);

export const happened = (faults: readonly FaultEntry[]): FaultEntry[] =>
  faults.filter(({ skipped }) => skipped === undefined);

/** A fault that a tenant causes for itself does not excuse effects on other tenants. */
export const excusing = (faults: readonly FaultEntry[]): FaultEntry[] =>
  happened(faults).filter(({ kind }) => !OF_TENANTS.has(kind));

export const losses = (faults: readonly FaultEntry[]): FaultEntry[] =>
  happened(faults).filter(({ kind }) => LOSSES.has(kind));

/** Faults of these kinds, each extended by `mendMs`; overlapping ones become one spell. */
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

/** Whether one of the spells overlaps the period. */
export const touches = (spells: readonly Spell[], fromMs: number, toMs: number): boolean =>
  spells.some((spell) => spell.fromMs <= toMs && fromMs <= spell.toMs);
