import * as z from "zod";
import type { KeyRow } from "../db/keys.ts";
import type { RatelimitRow } from "../db/ratelimits.ts";
import type { Deps } from "../deps.ts";
import { toCreditsState } from "../domain/keys/credits.ts";
import { type FullKey, readFullKeys } from "../domain/keys/full-keys.ts";
import type { KeyVault } from "../keys/key-vault.ts";
import { type IdentityOut, KeyId, type KeyOut, type RatelimitOut } from "./schemas.ts";

/**
 * Converts keys to the form of the API (api-v2.md section 6.2), in the given order. If a vault is given, includes the strings of
 * recoverable keys.
 */
export async function describeKeys(
  deps: Deps,
  workspaceId: string,
  rows: readonly KeyRow[],
  vault?: KeyVault,
): Promise<KeyOut[]> {
  return (await readFullKeys(deps, workspaceId, rows, vault)).map(toKeyOut);
}

export function toKeyOut({ row, parts: deps, remaining, plaintext }: FullKey): KeyOut {
  const identity = toIdentity(row, deps.identity_ratelimits);
  return {
    keyId: row.id,
    start: row.start,
    enabled: row.enabled,
    createdAt: row.created_at,
    ...(row.name === null ? {} : { name: row.name }),
    ...(isEmpty(row.meta) ? {} : { meta: { ...row.meta } }),
    ...(row.updated_at === null ? {} : { updatedAt: row.updated_at }),
    ...(row.last_used_at === null ? {} : { lastUsedAt: row.last_used_at }),
    ...(row.expires_at === null ? {} : { expires: row.expires_at }),
    ...unlessEmpty("permissions", deps.permissions),
    ...unlessEmpty("roles", deps.roles),
    ...(remaining === undefined ? {} : { credits: toCredits(row, remaining) }),
    ...(identity === undefined ? {} : { identity }),
    ...unlessEmpty("ratelimits", deps.ratelimits.map(toRatelimitOut)),
    ...(plaintext === undefined ? {} : { plaintext }),
  };
}

function toCredits(row: KeyRow, remaining: number): NonNullable<KeyOut["credits"]> {
  const { refill } = toCreditsState({ remaining, refillAmount: row.refill_amount, refillDay: row.refill_day });
  return refill === undefined ? { remaining } : { remaining, refill };
}

function toIdentity(row: KeyRow, ratelimits: readonly RatelimitRow[]): IdentityOut | undefined {
  if (row.identity_id === null || row.external_id === null) return undefined;
  return toIdentityOut({ id: row.identity_id, external_id: row.external_id, meta: row.identity_meta }, ratelimits);
}

export function toIdentityOut(
  identity: { id: string; external_id: string; meta: Readonly<Record<string, unknown>> | null },
  ratelimits: readonly RatelimitRow[],
): IdentityOut {
  return {
    id: identity.id,
    externalId: identity.external_id,
    ...(isEmpty(identity.meta) ? {} : { meta: { ...identity.meta } }),
    ...unlessEmpty("ratelimits", ratelimits.map(toRatelimitOut)),
  };
}

export const toRatelimitOut = (row: RatelimitRow): RatelimitOut => ({
  id: row.id,
  name: row.name,
  limit: row.max_count,
  duration: row.duration_ms,
  autoApply: row.auto_apply,
});

const isEmpty = (meta: Readonly<Record<string, unknown>> | null): meta is null =>
  meta === null || Object.keys(meta).length === 0;

/** Returns an object with the list as its only member. Returns an empty object for an empty list, because responses omit empty lists. */
const unlessEmpty = <Name extends string, Item>(name: Name, items: Item[]): { [name in Name]?: Item[] } =>
  items.length === 0 ? {} : ({ [name]: items } as { [name in Name]: Item[] });

/** Response of procedures that create a key. */
export const NewKey = z.strictObject({
  keyId: KeyId,
  key: z
    .string()
    .describe("The secret of the key. It is returned only once, unless the key is recoverable.")
    .meta({ examples: ["prod_5Kd3NBUAdUnhyzen"] }),
});
export type NewKey = z.input<typeof NewKey>;
