import type { Refill } from "./refill.ts";

export { dueRefills, type Refill, refilledAmount } from "./refill.ts";

/** The credits of a key. `remaining` null means unlimited; an unlimited key has no refill. */
export interface CreditsState {
  readonly remaining: number | null;
  readonly refill?: Refill | undefined;
}

/** The credits change that a caller requests: `credits` of keys.updateKey (`undefined` if omitted), or the fields of keys.updateCredits. */
export type CreditsUpdate =
  | undefined
  | null
  | { readonly remaining?: number | null | undefined; readonly refill?: Refill | null | undefined }
  | { readonly operation: "set" | "increment" | "decrement"; readonly value?: number | null | undefined };

const UNLIMITED: CreditsState = { remaining: null };

/**
 * Checks the credits that a key would have after a change against the refill rules (api-v2.md section 6.1). Returns an error message for
 * the caller, or `undefined`.
 */
export function checkRefill({ remaining, refill }: CreditsState): string | undefined {
  if (refill === undefined) return undefined;
  if (remaining === null) return "A refill needs a key with limited credits; this one would be unlimited.";
  if (refill.interval === "monthly" && refill.refillDay === undefined) return "A monthly refill needs `refillDay`.";
  if (refill.interval === "daily" && refill.refillDay !== undefined) return "A daily refill takes no `refillDay`.";
  return undefined;
}

/**
 * Returns the credits of a key after a change (api-v2.md section 10.3), or the reason why the change is not allowed. `current.remaining`
 * must be exact: the counter's value while the counter is loaded, otherwise the value in the database row.
 */
export function applyCreditsUpdate(current: CreditsState, update: CreditsUpdate): CreditsState | { error: string } {
  if (update === undefined) return current;
  if (update === null) return UNLIMITED;
  if ("operation" in update) return applyOperation(current, update);
  const remaining = update.remaining === undefined ? current.remaining : update.remaining;
  // Removing a key's credit limit clears its refill. A call that removes the limit and also sets a refill is an error, which `checkRefill`
  // returns.
  const kept = remaining === null ? undefined : current.refill;
  const refill = update.refill === undefined ? kept : (update.refill ?? undefined);
  const next = stateOf(remaining, refill);
  const error = checkRefill(next);
  return error === undefined ? next : { error };
}

function applyOperation(
  { remaining, refill }: CreditsState,
  { operation, value }: { operation: "set" | "increment" | "decrement"; value?: number | null | undefined },
): CreditsState | { error: string } {
  if (operation === "set") return value === null || value === undefined ? UNLIMITED : stateOf(value, refill);
  if (value === null || value === undefined) return { error: `The operation ${operation} needs a \`value\`.` };
  if (remaining === null) return { error: `The key is unlimited; ${operation} needs a key with limited credits.` };
  if (operation === "decrement") return stateOf(Math.max(0, remaining - value), refill);
  if (value > Number.MAX_SAFE_INTEGER - remaining) {
    return { error: `The credits would exceed ${Number.MAX_SAFE_INTEGER}.` };
  }
  return stateOf(remaining + value, refill);
}

const stateOf = (remaining: number | null, refill: Refill | undefined): CreditsState =>
  refill === undefined ? { remaining } : { remaining, refill };
