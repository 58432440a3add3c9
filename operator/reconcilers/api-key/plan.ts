import type { Input } from "../../../core/api/procedures.ts";
import { type ApiKeySpec, BEING_ISSUED } from "../../../core/manifests/api-key.ts";
import { parseDuration } from "../../../core/manifests/duration.ts";
import type { FoundSecret } from "../../source/contract.ts";
import { competitorConflict } from "../claims.ts";
import {
  CONFLICT_REQUEUE_MS,
  firstOf,
  type Plan,
  progressing,
  ready,
  released,
  stalled,
  type Verdict,
} from "../plan.ts";
import { invalid } from "../spec.ts";
import { changesOf, settingsOf } from "./changes.ts";
import type { ObservedApiKey, StoredKey } from "./gather.ts";

/*
 * Lifecycle of the keys of an ApiKey. The database contains the complete state: no step depends on a status or on memory, so the next
 * reconcile can continue after a crash at any step.
 *
 *   being issued   The key is created with an early expiry; the Secret does not contain it yet. If the Secret contains another key or
 *                  none, the secret is lost, so the key is revoked and another one is issued. Without an operator, the key expires.
 *   in use         The Secret contains the key, which gets the name and the expiry of the spec. After a rotation or a deletion of the
 *                  Secret, a successor is issued; when the Secret contains the successor, the key is replaced.
 *   replaced       The key expires after the overlap and is then revoked. It is never used again.
 *
 * A manager has at most one key of each name (api-v2.md, section 24.1), so two operators never issue two keys concurrently.
 */

export type ApiKeyAction =
  | { readonly type: "revoke"; readonly keyId: string; readonly why: string }
  | {
      readonly type: "issue";
      readonly key: Input<"keys.createKey">;
      readonly secret: { readonly name: string; readonly member: string; readonly found: FoundSecret };
      /** Name of the replaced key, for the Event. */
      readonly successorOf: string | undefined;
    }
  | { readonly type: "update"; readonly changes: Input<"keys.updateKey"> }
  | { readonly type: "removeSecret"; readonly name: string };

/** Lifetime of a key that is being issued, which is enough time for another operator to take over. */
const ISSUING_MS = 3_600_000;

/** Requeue interval. The object must be requeued, because no notification reports changes to permissions or to Secrets of other owners. */
const SECRET_REQUEUE_MS = 30_000;

export function planApiKey(observed: ObservedApiKey): Plan<ApiKeyAction> {
  const { object, parsed, api, nowMs } = observed;
  if (object.metadata.deletionTimestamp !== undefined) return planDeletion(observed);
  const current = findCurrent(observed);
  const status = statusOf(observed, current);
  const verdict = firstOf(observed, CHECKS);
  if (verdict !== undefined) return { actions: [], verdict, status, requeueAfterMs: requeueOf(verdict) };
  const { spec } = parsed;
  if (spec === undefined || "verdict" in api) throw new Error("an unresolved key passed the checks");
  const actions = actionsFor(observed, { spec, apiId: api.apiId, current });
  if (actions.length > 0) {
    const isDrift = actions.some(({ type }) => type === "update") && current !== undefined && !isBeingIssued(current);
    const planned = { actions, verdict: progressing("Progressing", "The key is being written."), status };
    return isDrift ? planned : { ...planned, isDue: true };
  }
  const synced = hasEnded(spec, nowMs)
    ? stalled("Expired", `The key expired at ${spec.expires}. Set a later spec.expires to use it again.`)
    : ready(`The key ${current?.keyId ?? ""} is in the Secret ${spec.secretRef.name}.`);
  return { actions, verdict: synced, status, requeueAfterMs: nextMs(observed, spec, current) };
}

const CHECKS = [
  ({ parsed }: ObservedApiKey): Verdict | undefined =>
    parsed.problems === undefined ? undefined : invalid(parsed.problems),

  ({ object, claimants }: ObservedApiKey): Verdict | undefined =>
    competitorConflict(
      object,
      claimants,
      (competitor) => `${competitor} is older and has the same spec.secretRef.name. Choose another Secret.`,
    ),

  ({ api }: ObservedApiKey): Verdict | undefined => ("verdict" in api ? api.verdict : undefined),

  ({ secret, parsed: { spec }, object }: ObservedApiKey): Verdict | undefined => {
    if (secret.state === "refused") return missingRights(object.metadata.namespace, secret.message);
    if (secret.state !== "foreign") return undefined;
    return stalled(
      "SecretNotOwned",
      `The Secret ${spec?.secretRef.name} exists and does not belong to this object, so it is not changed. Delete it, or create an ApiKey with another spec.secretRef.`,
    );
  },
];

/**
 * Returns the verdict for missing permissions. `why` is the message of the API server, which names the user, the verb and the namespace.
 */
export const missingRights = (namespace: string, why: string): Verdict =>
  progressing(
    "Forbidden",
    `The operator may not use Secrets of the namespace ${namespace}: ${why}. A Role there must allow it to get, create and patch secrets (docs/api-keys.md); the operator retries.`,
  );

const requeueOf = ({ reason }: Verdict): number | undefined => {
  const isOfSecret = reason === "SecretNotOwned" || reason === "Forbidden";
  return isOfSecret ? SECRET_REQUEUE_MS : reason === "Conflict" ? CONFLICT_REQUEUE_MS : undefined;
};

const isBeingIssued = ({ name }: StoredKey): boolean => name?.endsWith(BEING_ISSUED) === true;
const isReplaced = ({ name, keyId }: StoredKey): boolean => name?.endsWith(replaced(keyId)) === true;
const replaced = (keyId: string): string => ` (replaced ${keyId})`;

/** Returns the key that the Secret names. */
function findCurrent({ secret, keys, api }: ObservedApiKey): StoredKey | undefined {
  if (secret.state !== "ours" || "verdict" in api) return undefined;
  const named = keys.find(({ keyId }) => keyId === secret.keyId);
  return named === undefined || isReplaced(named) || named.apiId !== api.apiId ? undefined : named;
}

function actionsFor(
  { object, secret, keys, nowMs }: ObservedApiKey,
  { spec, apiId, current }: { spec: ApiKeySpec; apiId: string; current: StoredKey | undefined },
): ApiKeyAction[] {
  const name = spec.name ?? object.metadata.name.slice(0, 200);
  const others = keys.filter((key) => key !== current);
  const revocations = others.flatMap((key): ApiKeyAction[] => {
    if (isBeingIssued(key)) return [revocation(key, "its secret is lost")];
    return isReplaced(key) && (key.expires ?? 0) <= nowMs ? [revocation(key, "it was replaced")] : [];
  });
  const isDue = current === undefined || (isOver(rotationMs(current, spec), nowMs) && !isBeingIssued(current));
  if (isDue && !hasEnded(spec, nowMs)) {
    const { name: secretName, key: member } = spec.secretRef;
    // A new key receives the remaining credits of the newest key that was ever in use.
    const former = keys.find((key) => !isBeingIssued(key));
    const desired = settingsOf(spec, name);
    const key = {
      ...desired.forCreation(former?.credits?.remaining),
      apiId,
      name: `${name}${BEING_ISSUED}`,
      expires: Math.min(nowMs + ISSUING_MS, expiresMs(spec) ?? Number.POSITIVE_INFINITY),
    };
    const issue = { type: "issue", key, secret: { name: secretName, member, found: secret } } as const;
    return [...revocations, { ...issue, successorOf: former?.keyId }];
  }
  const overlapMs = parseDuration(spec.rotation?.overlap ?? "1h");
  const endMs = Math.min(nowMs + overlapMs, expiresMs(spec) ?? Number.POSITIVE_INFINITY);
  const replacements = others
    .filter((key) => !isBeingIssued(key) && !isReplaced(key))
    .map((key): ApiKeyAction => {
      const expires = Math.min(endMs, key.expires ?? endMs);
      return { type: "update", changes: { keyId: key.keyId, name: `${name}${replaced(key.keyId)}`, expires } };
    });
  // Updates come last, because the current key takes a name that another key had until then.
  return [...revocations, ...replacements, ...(current === undefined ? [] : updatesOf(current, spec, name))];
}

function updatesOf(current: StoredKey, spec: ApiKeySpec, name: string): ApiKeyAction[] {
  const changes = changesOf(current, spec, name);
  return changes === undefined ? [] : [{ type: "update", changes: { keyId: current.keyId, ...changes } }];
}

const revocation = ({ keyId }: StoredKey, why: string): ApiKeyAction => ({ type: "revoke", keyId, why });

const expiresMs = ({ expires }: ApiKeySpec): number | undefined =>
  expires === undefined ? undefined : Date.parse(expires);

/** Returns the rotation time of a key; `undefined` if the key expires earlier. */
function rotationMs({ createdAt }: StoredKey, spec: ApiKeySpec): number | undefined {
  const { every } = spec.rotation ?? {};
  if (every === undefined) return undefined;
  const dueMs = createdAt + parseDuration(every);
  return dueMs < (expiresMs(spec) ?? Number.POSITIVE_INFINITY) ? dueMs : undefined;
}

const isOver = (ms: number | undefined, nowMs: number): boolean => ms !== undefined && ms <= nowMs;
const hasEnded = (spec: ApiKeySpec, nowMs: number): boolean => isOver(expiresMs(spec), nowMs);

/** Returns the time until the next action; `undefined` if only a change of an object requires one. */
function nextMs({ keys, nowMs }: ObservedApiKey, spec: ApiKeySpec, current: StoredKey | undefined): number | undefined {
  const times = [
    current === undefined ? undefined : rotationMs(current, spec),
    expiresMs(spec),
    ...keys.filter(isReplaced).map(({ expires }) => expires),
  ].filter((time) => time !== undefined && time > nowMs);
  return times.length === 0 ? undefined : Math.min(...times.map((time) => (time ?? 0) - nowMs));
}

function statusOf({ api, parsed: { spec } }: ObservedApiKey, current: StoredKey | undefined): object {
  return {
    apiId: "apiId" in api ? api.apiId : undefined,
    keyId: current?.keyId,
    expiresAt: toTime(spec === undefined ? undefined : expiresMs(spec)),
    nextRotation: toTime(spec === undefined || current === undefined ? undefined : rotationMs(current, spec)),
  };
}

const toTime = (ms: number | undefined): string | undefined =>
  ms === undefined ? undefined : new Date(ms).toISOString();

/** Revokes all keys, including replaced ones within their overlap. */
function planDeletion({ keys, secret, parsed: { spec } }: ObservedApiKey): Plan<ApiKeyAction> {
  const actions: ApiKeyAction[] = keys.map((key) => revocation(key, "its ApiKey was deleted"));
  if (secret.state === "ours" && spec !== undefined) actions.push({ type: "removeSecret", name: spec.secretRef.name });
  if (actions.length === 0) return { ...released, actions };
  return { actions, verdict: progressing("Progressing", "The key is being revoked."), status: {} };
}
