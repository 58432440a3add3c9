import { isDeepStrictEqual } from "node:util";
import { PublicError } from "../../../../core/errors.ts";
import { type ApiKeySpec, BEING_ISSUED } from "../../../../core/manifests/api-key.ts";
import { parseDuration } from "../../../../core/manifests/duration.ts";
import { managerOfPolicy, requireManager } from "../../../../core/manifests/manager.ts";
import { findApi } from "../../../db/apis.ts";
import { replaceKeyPermissions, replaceKeyRoles } from "../../../db/key-changes.ts";
import { listDirectPermissions } from "../../../db/key-permissions.ts";
import { listKeysOfManager } from "../../../db/keys.ts";
import { findOwn } from "../../../db/managed-objects.ts";
import { findPolicy } from "../../../db/policies.ts";
import { changeKey, type KeyChanges } from "../../keys/change-key.ts";
import { toCreditsState } from "../../keys/credits.ts";
import { type FullKey, readFullKeys } from "../../keys/full-keys.ts";
import { type KeyToMake, type MadeKey, makeKey } from "../../keys/make-key.ts";
import { removeKey } from "../../keys/remove-key.ts";
import { areSameNames, ensurePermissions, getRolesByName } from "../../permissions/permission-links.ts";
import { type Application, type Applied, type Transaction, withLastManager } from "./application.ts";
import { refuse, requireReference } from "./claim.ts";
import { TO_APPLY } from "./permissions.ts";

/*
 * Lifecycle of the keys of an ApiKey. The database contains the complete state: no step depends on a status or on memory, so the next call
 * can continue after a crash at any step.
 *
 *   being issued   The key is created with an early expiry; the Secret does not contain it yet. If the Secret contains another key or
 *                  none, the secret is lost, so the key is revoked and another one is issued. Without an operator, the key expires.
 *   in use         The Secret contains the key, which gets the name and the expiry of the spec. After a rotation or a deletion of the
 *                  Secret, a successor is issued; when the Secret contains the successor, the key is replaced.
 *   replaced       The key expires after the overlap and is then revoked. It is never used again.
 *
 * A manager has at most one key of each name, so two operators never issue two keys concurrently.
 */

/** Lifetime of a key while it is being issued. It is long enough for another operator to take over. */
const ISSUING_MS = 3_600_000;

/** Maximum number of keys that are read for one manifest: the active key, and replaced keys that have not expired yet. */
const KEYS_MAX = 100;

/** State of the Secret of an ApiKey. */
export interface SecretState {
  /** Id of the key that the Secret contains; `undefined` if it contains none. */
  readonly keyId?: string | undefined;
  /** Whether the Secret can be written; only then may a key be issued. */
  readonly mayIssue: boolean;
}

/** A stored key of the manifest. */
export interface StoredKey {
  readonly id: string;
  readonly apiId: string;
  readonly name: string | null;
  readonly createdAt: number;
  readonly expires: number | null;
  readonly enabled: boolean;
  readonly owner: string | null;
  readonly roles: readonly string[];
  /** Slugs of the permissions that the key holds directly. */
  readonly permissions: readonly string[];
  readonly ratelimits: readonly Limit[];
  /** Remaining credits; `undefined` if unlimited. */
  readonly remaining: number | undefined;
  readonly refill: Refill | undefined;
}

interface Limit {
  readonly name: string;
  readonly limit: number;
  readonly duration: number;
  readonly autoApply: boolean;
}

type Refill = NonNullable<NonNullable<KeyChanges["credits"]>["refill"]>;

export type ApiKeyStep =
  | { readonly type: "revoke"; readonly keyId: string }
  | { readonly type: "issue"; readonly key: KeyToMake; readonly successorOf: string | undefined }
  | { readonly type: "update"; readonly keyId: string; readonly changes: KeyUpdate };

export type KeyUpdate = KeyChanges & { readonly roles?: readonly string[]; readonly permissions?: readonly string[] };

/** State of the manifest's key after the steps, for the manifest's status. */
export interface KeyOutcome {
  /** Id of the key that the Secret contains, if it is in use. */
  readonly keyId?: string;
  /** The issued key, with its secret. */
  readonly issued?: MadeKey;
  /** Id of the key that `issued` replaces. */
  readonly successorOf?: string;
  /** Whether a key must be issued but was not, because `mayIssue` is false. */
  readonly needsIssue: boolean;
  /** Unix ms. */
  readonly nextRotation?: number;
  /** Time until the next call has something to change, ms. */
  readonly nextMs?: number;
  /** Whether `spec.expires` has passed. */
  readonly hasEnded: boolean;
}

export interface PlannedKey {
  readonly steps: readonly ApiKeyStep[];
  readonly current: StoredKey | undefined;
  readonly outcome: Omit<KeyOutcome, "issued">;
}

/**
 * Plans how the keys of a manifest change. `keys` are sorted, newest first. `nowMs` is the time of the database's clock, which also
 * determines when keys are created and expire. Pure.
 */
export function planApiKey(
  { spec, manager }: Pick<Application<ApiKeySpec>, "spec" | "manager">,
  { apiId, keys, secret, nowMs }: { apiId: string; keys: readonly StoredKey[]; secret: SecretState; nowMs: number },
): PlannedKey {
  const name = spec.name ?? requireManager(manager).name.slice(0, 200);
  const named = keys.find(({ id }) => id === secret.keyId);
  const current = named === undefined || isReplaced(named) || named.apiId !== apiId ? undefined : named;
  const others = keys.filter((key) => key !== current);
  const revocations = others
    .filter((key) => isBeingIssued(key) || (isReplaced(key) && (key.expires ?? 0) <= nowMs))
    .map(({ id: keyId }) => ({ type: "revoke", keyId }) as const);
  const ended = isOver(expiresMs(spec), nowMs);
  const rotation = current && rotationMs(current, spec);
  const isDue = current === undefined || (isOver(rotation, nowMs) && !isBeingIssued(current));
  const needsIssue = isDue && !ended;
  const outcome = {
    ...(current === undefined ? {} : { keyId: current.id }),
    ...(rotation === undefined ? {} : { nextRotation: rotation }),
    ...nextOf([rotation, expiresMs(spec), ...keys.filter(isReplaced).map(({ expires }) => expires)], nowMs),
    needsIssue: needsIssue && !secret.mayIssue,
    hasEnded: ended,
  };
  if (needsIssue) {
    if (!secret.mayIssue) return { steps: revocations, current, outcome };
    // A new key receives the remaining credits of the newest key that was ever in use.
    const former = keys.find((key) => !isBeingIssued(key));
    const expires = Math.min(nowMs + ISSUING_MS, expiresMs(spec) ?? Number.POSITIVE_INFINITY);
    const key = { ...keyOf(spec, former?.remaining), apiId, name: `${name}${BEING_ISSUED}`, expires };
    return { steps: [...revocations, { type: "issue", key, successorOf: former?.id }], current, outcome };
  }
  const overlapMs = parseDuration(spec.rotation?.overlap ?? "1h");
  const endMs = Math.min(nowMs + overlapMs, expiresMs(spec) ?? Number.POSITIVE_INFINITY);
  const replacements = others
    .filter((key) => !isBeingIssued(key) && !isReplaced(key))
    .map(({ id: keyId, expires }): ApiKeyStep => {
      const changes = { name: `${name}${replaced(keyId)}`, expires: Math.min(endMs, expires ?? endMs) };
      return { type: "update", keyId, changes };
    });
  const changes = current && changesOf(current, spec, name);
  // The update comes last, because it gives the current key the name of the replaced key, and an earlier step must have renamed that key.
  const updates = current === undefined || changes === undefined ? [] : [{ keyId: current.id, changes }];
  const steps = [...revocations, ...replacements, ...updates.map((one) => ({ type: "update", ...one }) as const)];
  return { steps, current, outcome };
}

const isBeingIssued = ({ name }: StoredKey): boolean => name?.endsWith(BEING_ISSUED) === true;
const isReplaced = ({ name, id }: StoredKey): boolean => name?.endsWith(replaced(id)) === true;
const replaced = (keyId: string): string => ` (replaced ${keyId})`;

const expiresMs = ({ expires }: ApiKeySpec): number | undefined =>
  expires === undefined ? undefined : Date.parse(expires);

const isOver = (ms: number | undefined, nowMs: number): boolean => ms !== undefined && ms <= nowMs;

/** Returns the rotation time of a key; `undefined` if the key expires earlier. */
function rotationMs({ createdAt }: StoredKey, spec: ApiKeySpec): number | undefined {
  const { every } = spec.rotation ?? {};
  if (every === undefined) return undefined;
  const dueMs = createdAt + parseDuration(every);
  return dueMs < (expiresMs(spec) ?? Number.POSITIVE_INFINITY) ? dueMs : undefined;
}

function nextOf(times: readonly (number | null | undefined)[], nowMs: number): { readonly nextMs?: number } {
  const later = times.filter((time) => typeof time === "number").filter((time) => time > nowMs);
  return later.length === 0 ? {} : { nextMs: Math.min(...later) - nowMs };
}

/** Returns the key to create. `left` is the number of remaining credits of the previous key, if there was one. */
function keyOf(spec: ApiKeySpec, left: number | undefined): Omit<KeyToMake, "apiId" | "name" | "expires"> {
  const { owner, roles, permissions, credits } = spec;
  return {
    roles,
    permissions,
    ratelimits: limitsOf(spec),
    enabled: true,
    recoverable: false,
    ...(owner === undefined ? {} : { externalId: owner }),
    ...(credits === undefined
      ? {}
      : {
          credits: {
            remaining: left ?? credits.remaining,
            ...(credits.refill && { refill: refillOf(credits.refill) }),
          },
        }),
  };
}

const limitsOf = ({ ratelimits }: ApiKeySpec): Limit[] =>
  ratelimits.map(({ duration, ...limit }) => ({ ...limit, duration: parseDuration(duration) }));

function refillOf({ interval, amount, refillDay }: NonNullable<NonNullable<ApiKeySpec["credits"]>["refill"]>): Refill {
  const common = { interval: interval === "Daily" ? "daily" : "monthly", amount } as const;
  return refillDay === undefined ? common : { ...common, refillDay };
}

/**
 * Returns the changes that make the current key match its spec; `undefined` if it already matches. A different number of remaining credits
 * is not a difference.
 */
function changesOf(key: StoredKey, spec: ApiKeySpec, name: string): KeyUpdate | undefined {
  const { owner = null, roles, permissions } = spec;
  const expires = expiresMs(spec) ?? null;
  const ratelimits = limitsOf(spec);
  const changes: KeyUpdate = {
    ...(key.name === name ? {} : { name }),
    ...(key.enabled ? {} : { enabled: true }),
    ...(key.expires === expires ? {} : { expires }),
    ...(key.owner === owner ? {} : { externalId: owner }),
    ...(areSameNames(key.roles, roles) ? {} : { roles }),
    ...(areSameNames(key.permissions, permissions) ? {} : { permissions }),
    ...(isDeepStrictEqual(byName(key.ratelimits), byName(ratelimits)) ? {} : { ratelimits }),
    ...creditChanges(key, spec),
  };
  return Object.keys(changes).length === 0 ? undefined : changes;
}

const byName = (limits: readonly Limit[]) =>
  new Map(limits.map(({ name, limit, duration, autoApply }) => [name, { limit, duration, autoApply }]));

function creditChanges({ remaining, refill: stored }: StoredKey, { credits }: ApiKeySpec): Pick<KeyChanges, "credits"> {
  if (credits === undefined) return remaining === undefined ? {} : { credits: null };
  const refill = credits.refill && refillOf(credits.refill);
  if (remaining === undefined) return { credits: { remaining: credits.remaining, ...(refill && { refill }) } };
  return isDeepStrictEqual(stored, refill) ? {} : { credits: { refill: refill ?? null } };
}

/** Applies an ApiKey. */
export async function applyApiKey(
  transaction: Transaction,
  desired: Application<ApiKeySpec> & { readonly secret: SecretState },
): Promise<Applied & { readonly key: KeyOutcome }> {
  const { actor } = transaction;
  const apiId = await resolveApi(transaction, desired);
  actor.require(TO_APPLY.readKey, apiId);
  const keys = await readKeys(transaction, desired.manager);
  const nowMs = actor.deps.nowMs();
  const { steps, current, outcome } = planApiKey(desired, { apiId, keys, secret: desired.secret, nowMs });
  let issued: MadeKey | undefined;
  let successorOf: string | undefined;
  for (const step of steps) {
    if (step.type === "revoke") {
      await revoke(actor, step.keyId);
    } else if (step.type === "update") await update(transaction, step);
    else {
      ({ successorOf } = step);
      issued = await makeKey(actor, step.key, { createKey: TO_APPLY.createKey, encryptKey: TO_APPLY.createKey });
    }
  }
  const changes = steps.flatMap((step) => (step.type === "update" && step.keyId === current?.id ? pathsOf(step) : []));
  return {
    outcome: steps.length === 0 ? "unchanged" : issued === undefined ? "updated" : "created",
    ids: { apiId, ...(current === undefined ? {} : { keyId: current.id }) },
    // When a key comes into use, it gets the name from the spec. This is not reported, because it does not revert another writer's change.
    changes: current === undefined || isBeingIssued(current) ? [] : changes,
    key: {
      ...outcome,
      ...(issued === undefined ? {} : { issued }),
      ...(successorOf === undefined ? {} : { successorOf }),
    },
  };
}

/** Revokes a key. A concurrent call may have revoked it already. */
async function revoke(actor: Transaction["actor"], keyId: string): Promise<void> {
  try {
    await removeKey(actor, { keyId, permanent: false, needed: TO_APPLY.deleteKey });
  } catch (error) {
    if (!(error instanceof PublicError) || error.kind !== "key_not_found") throw error;
  }
}

const pathsOf = ({ changes }: Extract<ApiKeyStep, { type: "update" }>) =>
  Object.entries(changes).map(([path, next]) => ({ path, new: next }));

async function update(
  { actor }: Transaction,
  { keyId, changes: { roles, permissions, ...changes } }: Extract<ApiKeyStep, { type: "update" }>,
): Promise<void> {
  const { workspaceId } = actor.caller;
  const ref = { workspaceId, keyId };
  await changeKey(actor, {
    keyId,
    changes,
    needed: TO_APPLY.updateKey,
    refillField: "body.spec.credits.refill",
    relink: async (tx) => {
      if (roles !== undefined) {
        const found = await getRolesByName(tx, workspaceId, roles);
        await replaceKeyRoles(tx, { ...ref, roleIds: found.map(({ id }) => id) });
      }
      if (permissions === undefined) return [];
      const ensured = await ensurePermissions(tx, actor, permissions);
      await replaceKeyPermissions(tx, { ...ref, permissionIds: ensured.permissions.map(({ id }) => id) });
      return [...ensured.events];
    },
  });
}

/** Returns the id of the key's API. Throws if the manifest is not allowed to refer to that API. */
async function resolveApi({ tx, actor }: Transaction, desired: Application<ApiKeySpec>): Promise<string> {
  const { workspaceId } = actor.caller;
  const { policyRef, apiRef } = desired.spec;
  const field = policyRef === undefined ? "apiRef.id" : "policyRef";
  const apiId = policyRef === undefined ? apiRef?.id : await apiOfPolicy({ tx, actor }, desired, policyRef);
  const row = apiId === undefined ? undefined : await findApi(tx, { workspaceId, apiId });
  if (row === undefined) throw refuse("api_not_found", field, `The API ${apiId} does not exist.`);
  const api = await withLastManager(tx, { workspaceId, kind: "api" }, row);
  requireReference(desired, api, { label: `The API ${api.id}`, field });
  return api.id;
}

async function apiOfPolicy(
  { tx, actor }: Transaction,
  desired: Application<ApiKeySpec>,
  { name, namespace: given }: NonNullable<ApiKeySpec["policyRef"]>,
): Promise<string> {
  const { workspaceId } = actor.caller;
  const self = requireManager(desired.manager);
  const namespace = given ?? self.namespace;
  const manager = managerOfPolicy({ cluster: self.cluster, namespace, name });
  const label = `The ApiKeyPolicy ${namespace}/${name}`;
  requireReference(desired, { manager, lastManager: undefined }, { label, field: "policyRef" });
  const own = await findOwn(tx, "policy", { workspaceId, manager });
  const policy = own && (await findPolicy(tx, { workspaceId, policyId: own.id }));
  if (policy === undefined) throw refuse("api_not_found", "policyRef", `${label} is not ready yet.`);
  return policy.api_id;
}

async function readKeys({ tx, actor }: Transaction, manager: string): Promise<StoredKey[]> {
  const { workspaceId } = actor.caller;
  const rows = await listKeysOfManager(tx, { workspaceId, manager, rowsMax: KEYS_MAX });
  const full = await readFullKeys(actor.deps, workspaceId, rows);
  const direct = await listDirectPermissions(tx, { workspaceId, keyIds: rows.map(({ id }) => id) });
  return full.map((key) => toStored(key, direct.get(key.row.id) ?? []));
}

const toStored = ({ row, parts, remaining }: FullKey, permissions: readonly string[]): StoredKey => ({
  id: row.id,
  apiId: row.api_id,
  name: row.name,
  createdAt: row.created_at,
  expires: row.expires_at,
  enabled: row.enabled,
  owner: row.external_id,
  roles: parts.roles,
  permissions,
  ratelimits: parts.ratelimits.map(({ name, max_count, duration_ms, auto_apply }) => ({
    name,
    limit: max_count,
    duration: duration_ms,
    autoApply: auto_apply,
  })),
  remaining,
  refill:
    remaining === undefined
      ? undefined
      : toCreditsState({ remaining, refillAmount: row.refill_amount, refillDay: row.refill_day }).refill,
});
