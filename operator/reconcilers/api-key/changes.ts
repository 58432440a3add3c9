import { isDeepStrictEqual } from "node:util";
import type { Input } from "../../../core/api/procedures.ts";
import type { ApiKeySpec } from "../../../core/manifests/api-key.ts";
import { parseDuration } from "../../../core/manifests/duration.ts";
import type { StoredKey } from "./gather.ts";

/* Converts the spec of a key to request members of the API, and computes how a stored key differs from its spec. */

type Refill = NonNullable<NonNullable<ApiKeySpec["credits"]>["refill"]>;
type Changes = Omit<Input<"keys.updateKey">, "keyId">;

export function settingsOf(spec: ApiKeySpec, name: string) {
  const { owner, roles, permissions, credits } = spec;
  const ratelimits = spec.ratelimits.map(({ duration, ...limit }) => ({ ...limit, duration: parseDuration(duration) }));
  return {
    name,
    owner,
    roles,
    permissions,
    ratelimits,
    /** Returns the members for creating a key. `left` is the number of remaining credits of the previous key, if there was one. */
    forCreation: (left: number | undefined) => ({
      roles,
      permissions,
      ratelimits,
      ...(owner === undefined ? {} : { externalId: owner }),
      ...(credits === undefined
        ? {}
        : { credits: { remaining: left ?? credits.remaining, ...refillOf(credits.refill) } }),
    }),
  };
}

const refillOf = (refill: Refill | undefined) => (refill === undefined ? {} : { refill: toApi(refill) });

const toApi = ({ interval, ...refill }: Refill) =>
  plainRefill({ ...refill, interval: interval === "Daily" ? "daily" : "monthly" });

/** Returns the refill without `undefined` members, in the form of API responses. */
const plainRefill = ({ interval, amount, refillDay }: NonNullable<NonNullable<StoredKey["credits"]>["refill"]>) => ({
  interval,
  amount,
  ...(refillDay === undefined ? {} : { refillDay }),
});

/**
 * Returns the changes that make the current key match its spec; `undefined` if it already matches. A different number of remaining credits
 * does not count as a difference.
 */
export function changesOf(key: StoredKey, spec: ApiKeySpec, name: string): Changes | undefined {
  const { owner, roles, permissions, ratelimits } = settingsOf(spec, name);
  const expires = spec.expires === undefined ? undefined : Date.parse(spec.expires);
  const changes: Changes = {
    ...(key.name === name ? {} : { name }),
    ...(key.enabled ? {} : { enabled: true }),
    ...(key.expires === expires ? {} : { expires: expires ?? null }),
    ...(key.identity?.externalId === owner ? {} : { externalId: owner ?? null }),
    ...(areSame(key.roles, roles) ? {} : { roles }),
    ...(areSame(key.directPermissions, permissions) ? {} : { permissions }),
    ...(isDeepStrictEqual(byName(key.ratelimits), byName(ratelimits)) ? {} : { ratelimits }),
    ...creditChanges(key, spec),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Returns whether both lists are equal apart from case, because names and slugs are unique in the database apart from case. */
function areSame(stored: readonly string[] = [], desired: readonly string[]): boolean {
  const fold = (names: readonly string[]) => new Set(names.map((name) => name.toLowerCase()));
  return isDeepStrictEqual(fold(stored), fold(desired));
}

interface Limit {
  readonly name: string;
  readonly limit: number;
  readonly duration: number;
  readonly autoApply: boolean;
}

const byName = (limits: readonly Limit[] = []) =>
  new Map(limits.map(({ name, limit, duration, autoApply }) => [name, { limit, duration, autoApply }]));

function creditChanges({ credits: stored }: StoredKey, { credits }: ApiKeySpec): Pick<Changes, "credits"> {
  if (credits === undefined) return stored === undefined ? {} : { credits: null };
  if (stored === undefined) return { credits: { remaining: credits.remaining, ...refillOf(credits.refill) } };
  const refill = credits.refill && toApi(credits.refill);
  const isSame = isDeepStrictEqual(stored.refill && plainRefill(stored.refill), refill);
  return isSame ? {} : { credits: { refill: refill ?? null } };
}
