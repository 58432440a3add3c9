import type { RatelimitRecord } from "../records.ts";
import type { KeyView } from "./key-view.ts";

/** One entry of `ratelimits` of keys.verifyKey. */
export interface RequestedLimit {
  readonly name: string;
  readonly cost?: number | undefined;
  readonly limit?: number | undefined;
  readonly durationMs?: number | undefined;
}

export interface SelectedLimit {
  /** Id of the stored limit; empty for an ad-hoc limit. */
  readonly id: string;
  readonly name: string;
  readonly limit: number;
  readonly durationMs: number;
  readonly autoApply: boolean;
  readonly cost: number;
  /**
   * Id of the counter's owner. For a limit of an identity it is the identity's id, so the keys of the identity share the counter; otherwise
   * it is the key's id.
   */
  readonly identifier: string;
}

/**
 * `unknown`: a named limit is not attached to the key (412). `tooShort`: the window of the ad-hoc limit with this name is shorter than 1 s
 * (400).
 */
export type LimitSelection =
  | { readonly limits: readonly SelectedLimit[] }
  | { readonly unknown: string }
  | { readonly tooShort: string };

const DURATION_MS_MIN = 1000;
const NO_LIMITS: LimitSelection = { limits: [] };

/** Returns the rate limits that a verification charges, sorted by name (api-v2.md section 12.2). */
export function selectLimits(view: KeyView, requested: readonly RequestedLimit[]): LimitSelection {
  const { key, identity } = view;
  const hasStored = key.ratelimits.length > 0 || (identity !== undefined && identity.ratelimits.length > 0);
  if (!hasStored && requested.length === 0) return NO_LIMITS;

  const stored = new Map<string, SelectedLimit>();
  if (identity !== undefined) {
    for (const limit of identity.ratelimits) stored.set(limit.name, select(limit, identity.id));
  }
  for (const limit of key.ratelimits) stored.set(limit.name, select(limit, key.keyId));

  const selected = new Map<string, SelectedLimit>();
  for (const limit of stored.values()) {
    if (limit.autoApply) selected.set(limit.name, limit);
  }
  // If several entries have the same name, the last one applies, so an earlier entry that is invalid does not make the call fail.
  for (const entry of new Map(requested.map((one) => [one.name, one])).values()) {
    const known = stored.get(entry.name);
    const cost = entry.cost ?? 1;
    if (entry.limit === undefined && entry.durationMs === undefined) {
      if (known === undefined) return { unknown: entry.name };
      selected.set(entry.name, { ...known, cost });
      continue;
    }
    const limit = entry.limit ?? known?.limit;
    const durationMs = entry.durationMs ?? known?.durationMs;
    if (limit === undefined || durationMs === undefined) return { unknown: entry.name };
    if (durationMs < DURATION_MS_MIN) return { tooShort: entry.name };
    selected.set(entry.name, {
      id: "",
      name: entry.name,
      limit,
      durationMs,
      autoApply: false,
      cost,
      identifier: key.keyId,
    });
  }
  return { limits: [...selected.values()].sort(byName) };
}

/** Returns the identity's limits that apply to this key: all except those with the name of a limit of the key. */
export function effectiveIdentityLimits({ key, identity }: KeyView): RatelimitRecord[] {
  if (identity === undefined) return [];
  return identity.ratelimits.filter(({ name }) => !key.ratelimits.some((own) => own.name === name));
}

const select = (limit: RatelimitRecord, identifier: string): SelectedLimit => ({
  id: limit.id,
  name: limit.name,
  limit: limit.limit,
  durationMs: limit.durationMs,
  autoApply: limit.autoApply,
  cost: 1,
  identifier,
});

const byName = (a: SelectedLimit, b: SelectedLimit): number => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
