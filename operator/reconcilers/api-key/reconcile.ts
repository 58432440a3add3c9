import { ApiKeySpec } from "../../../core/manifests/api-key.ts";
import { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import type { FoundSecret, ManifestObject } from "../../source/contract.ts";
import { type Application, type Applied, applyManifest, deleteManifest, ownerOfApi } from "../apply-manifest.ts";
import { competitorConflict, competitorsOf } from "../claims.ts";
import { type Context, LeadershipLost, managerOf } from "../context.ts";
import { labelFor } from "../names-in-messages.ts";
import {
  blocked,
  CONFLICT_REQUEUE_MS,
  progressing,
  type Result,
  ready,
  released,
  stalled,
  type Verdict,
} from "../plan.ts";
import { apiRefIdIn, policyRefOf, secretNameIn } from "../raw-spec.ts";
import type { KindSteps, Ownership } from "../reconcile-object.ts";
import { invalid, mayRefer, type ParsedSpec, parseSpec } from "../spec.ts";
import { ownStatus } from "../status.ts";

/*
 * Keeps the Secret of an ApiKey up to date. The API issues, rotates and revokes keys (managed.applyObject). The operator reports to it
 * which key the Secret contains, and writes an issued key into the Secret. After each step, the next call can continue, even if another
 * operator makes it.
 */

export const apiKeySteps: KindSteps = { reconcile: reconcileApiKey };

/** Requeue interval. It is necessary because nothing notifies the operator when permissions, or Secrets of other owners, change. */
const SECRET_REQUEUE_MS = 30_000;

/** Maximum number of calls. One issues a key, one brings it into use, and one more is needed if another operator is active. */
const CALLS_MAX = 4;

async function reconcileApiKey(object: ManifestObject, ctx: Context, ownership: Ownership): Promise<Result | "again"> {
  const parsed = parseSpec(ApiKeySpec, object);
  if (object.metadata.deletionTimestamp !== undefined) return await cleanUp(object, parsed, ctx);
  const status = ownership.isOwned ? ownStatus(object) : {};
  const held = (verdict: Verdict): Result => ({ ...blocked(verdict, status), requeueAfterMs: requeueOf(verdict) });
  if (parsed.problems !== undefined) return held(invalid(parsed.problems));
  const { spec, raw } = parsed;
  const conflict =
    competitorConflict(
      object,
      competitorsOf(object, ctx.source),
      (competitor) => `${competitor} is older and has the same spec.secretRef.name. Choose another Secret.`,
    ) ?? refusalByPolicy(object, ctx);
  if (conflict !== undefined) return held(conflict);
  let drift: string | undefined;
  for (let call = 1; call <= CALLS_MAX; call++) {
    const secret = await ctx.source.secrets.find(object, spec.secretRef.name);
    const unusable = verdictOfSecret(secret, spec, object);
    if (unusable !== undefined) return held(unusable);
    const keyId = secret.state === "ours" ? secret.keyId : undefined;
    // If the Secret contains no key, a key will be issued. The first step therefore checks that the Secret can be written.
    const refused = keyId === undefined ? await writable(object, spec, secret, ctx) : undefined;
    if (refused !== undefined) return held(refused);
    const state = { ...(keyId === undefined ? {} : { keyId }), mayIssue: keyId === undefined };
    const first = await applyKey(object, ctx, ownership, { spec: raw, secret: state });
    if (first === "moved") return "again";
    if (first.verdict !== undefined) return held(first.verdict);
    drift ??= first.drift;
    let { applied } = first;
    if (applied.key?.needsIssue === true) {
      const late = await writable(object, spec, secret, ctx);
      if (late !== undefined) return held(late);
      const issuing = await applyKey(object, ctx, ownership, { spec: raw, secret: { ...state, mayIssue: true } });
      if (issuing === "moved") return "again";
      if (issuing.verdict !== undefined) return held(issuing.verdict);
      ({ applied } = issuing);
    }
    if (applied.key?.issued === undefined) return { ...settled(spec, applied), drift };
    const late = await writeSecret(object, spec, { found: secret, key: applied.key }, ctx);
    if (late !== undefined) return held(late);
  }
  return "again";
}

type Key = NonNullable<Applied["key"]>;

/** Returns the result for a key that the Secret contains, or that has expired. */
function settled(spec: ApiKeySpec, { ids, key }: Applied): Result {
  const { hasEnded = false, nextRotation, nextMs } = key ?? {};
  return {
    verdict: hasEnded
      ? stalled("Expired", `The key expired at ${spec.expires}. Set a later spec.expires to use it again.`)
      : ready(`The key ${ids.keyId ?? ""} is in the Secret ${spec.secretRef.name}.`),
    status: {
      apiId: ids.apiId,
      keyId: ids.keyId,
      expiresAt: spec.expires === undefined ? undefined : toTime(Date.parse(spec.expires)),
      nextRotation: nextRotation === undefined ? undefined : toTime(nextRotation),
    },
    requeueAfterMs: nextMs,
  };
}

const toTime = (ms: number): string => new Date(ms).toISOString();

/**
 * Calls the API. If the API refuses the reference, calls it again with the permission of the manifest that manages the referenced API,
 * provided that this manifest allows the reference.
 */
async function applyKey(
  object: ManifestObject,
  ctx: Context,
  ownership: Ownership,
  application: Pick<Application, "spec" | "secret">,
): ReturnType<typeof applyManifest> {
  const apply = (mayReferTo: readonly string[]) =>
    applyManifest(object, ctx, ownership, { ...application, mayReferTo, sayCompetitor: String });
  const { namespace } = object.metadata;
  const ref = policyRefOf(object);
  const policy = ref && ctx.source.get("ApiKeyPolicy", ref);
  const foreign = policy !== undefined && policy.metadata.namespace !== namespace ? [managerOf(ctx, policy)] : [];
  const result = await apply(foreign);
  if (result === "moved" || result.verdict === undefined || result.refusal.kind !== "reference_not_allowed")
    return result;
  // The API may belong to a policy of another namespace: if this ApiKey's spec contains the id of the API, or if its policy uses the API of
  // another policy.
  const { data } =
    policy === undefined ? {} : await ctx.api.call("policies.getPolicy", { manager: managerOf(ctx, policy) });
  const apiId = apiRefIdIn(object) ?? data?.apiId;
  const owner = apiId === undefined ? undefined : await ownerOfApi(apiId, ctx);
  if (owner === undefined) return result;
  const refused = refusalOf(owner, namespace);
  return refused === undefined ? await apply([...foreign, managerOf(ctx, owner)]) : { ...result, verdict: refused };
}

/** Returns the verdict if the policy that `spec.policyRef` names does not exist or may not be used. */
function refusalByPolicy(object: ManifestObject, ctx: Context): Verdict | undefined {
  const ref = policyRefOf(object);
  if (ref === undefined) return undefined;
  const policy = ctx.source.get("ApiKeyPolicy", ref);
  if (policy !== undefined) return refusalOf(policy, object.metadata.namespace);
  const message = `The ApiKeyPolicy ${ref.namespace}/${ref.name} does not exist. Create it, or create an ApiKey for another one.`;
  return progressing("DependencyNotReady", message);
}

function refusalOf(policy: ManifestObject, namespace: string): Verdict | undefined {
  if (!mayRefer(ApiKeyPolicySpec, policy, namespace)) {
    // The message omits the name: an author without access to the other namespace must not learn which objects it contains.
    return stalled(
      "NotAllowed",
      `The policy of this API does not allow keys of the namespace ${namespace}. Add ${namespace} to its spec.allowedNamespaces.`,
    );
  }
  if (policy.metadata.deletionTimestamp === undefined) return undefined;
  return progressing("DependencyNotReady", `${labelFor(policy, namespace)} is being deleted.`);
}

function verdictOfSecret(
  secret: FoundSecret,
  { secretRef }: ApiKeySpec,
  { metadata }: ManifestObject,
): Verdict | undefined {
  if (secret.state === "refused") return missingRights(metadata.namespace, secret.message);
  if (secret.state !== "foreign") return undefined;
  return stalled(
    "SecretNotOwned",
    `The Secret ${secretRef.name} exists and does not belong to this object, so it is not changed. Delete it, or create an ApiKey with another spec.secretRef.`,
  );
}

/** Returns the verdict if a key cannot be written to the Secret. Checked before a key is issued, so that none is issued in vain. */
async function writable(
  object: ManifestObject,
  { secretRef: { name, key: member } }: ApiKeySpec,
  found: FoundSecret,
  { source }: Context,
): Promise<Verdict | undefined> {
  const refused = await source.secrets.check(object, { name, member, keyId: "none" }, found);
  return refused === undefined ? undefined : verdictOnWrite(refused, object);
}

/** Writes an issued key into the Secret. The text of the key exists only here and in the response. */
async function writeSecret(
  object: ManifestObject,
  { secretRef: { name, key: member } }: ApiKeySpec,
  { found, key }: { readonly found: FoundSecret; readonly key: Key },
  { source, signal }: Context,
): Promise<Verdict | undefined> {
  const { issued, successorOf } = key;
  if (issued === undefined) return undefined;
  if (signal.aborted) throw new LeadershipLost("this replica no longer leads");
  const { keyId, key: text } = issued;
  const refused = await source.secrets.write(object, { name, member, keyId, text }, found);
  if (refused !== undefined) return verdictOnWrite(refused, object);
  await source.recordEvent(object, {
    type: "Normal",
    reason: successorOf === undefined ? "KeyIssued" : "KeyRotated",
    action: "Issue",
    note: `The key ${keyId} is in the Secret ${name}${successorOf === undefined ? "" : ` and replaces ${successorOf}`}.`,
  });
  return undefined;
}

/** A Secret of another type cannot be managed, even if its owner reference names this object. */
const verdictOnWrite = (refused: string, { metadata: { namespace } }: ManifestObject) =>
  refused.startsWith("422") ? stalled("SecretNotOwned", refused) : missingRights(namespace, refused);

/**
 * Returns the verdict for missing permissions. `why` is the message of the API server, which contains the user, the verb and the namespace.
 */
const missingRights = (namespace: string, why: string): Verdict =>
  progressing(
    "Forbidden",
    `The operator may not use Secrets of the namespace ${namespace}: ${why}. A Role there must allow it to get, create and patch secrets (docs/api-keys.md); the operator retries.`,
  );

const requeueOf = ({ reason }: Verdict): number =>
  reason === "SecretNotOwned" || reason === "Forbidden" ? SECRET_REQUEUE_MS : CONFLICT_REQUEUE_MS;

/** Revokes all keys, including replaced keys whose overlap has not ended, and then removes the Secret. */
async function cleanUp(object: ManifestObject, parsed: ParsedSpec<ApiKeySpec>, ctx: Context): Promise<Result> {
  const verdict = await deleteManifest(object, ctx, undefined);
  if (verdict !== undefined) return { ...blocked(verdict, ownStatus(object)), requeueAfterMs: CONFLICT_REQUEUE_MS };
  const { secrets } = ctx.source;
  const name = secretNameIn(object);
  // The Secret's owner reference makes Kubernetes remove it, so the operator needs no permission on Secrets here.
  if (name === undefined || secrets.areCollected || parsed.spec === undefined) return released;
  const found = await secrets.find(object, name);
  if (found.state === "ours") await secrets.remove(object, name);
  return released;
}
