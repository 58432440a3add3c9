import type { Refusal } from "../../api/client.ts";
import type { ManifestObject } from "../../source/contract.ts";
import { type Context, managementOf } from "../context.ts";
import { stalled, type Verdict } from "../plan.ts";
import { type ApiKeyAction, missingRights } from "./plan.ts";

/** Outcome of an action. Data of the response is not used, because the next pass reads created objects. */
export interface Applied {
  readonly refusal?: Refusal;
  /** Verdict if a system other than the API rejected the action. */
  readonly verdict?: Verdict;
}

export async function applyApiKey(action: ApiKeyAction, object: ManifestObject, ctx: Context): Promise<Applied> {
  switch (action.type) {
    case "issue":
      return await issue(action, object, ctx);
    case "update":
      return await ctx.api.call("keys.updateKey", action.changes, managementOf(ctx, object));
    case "revoke": {
      const response = await ctx.api.call("keys.deleteKey", { keyId: action.keyId }, managementOf(ctx, object));
      // The key has been revoked or deleted with its API in the meantime, which is the desired state.
      return response.refusal?.status === 404 ? {} : response;
    }
    case "removeSecret":
      await ctx.source.secrets.remove(object, action.name);
      return {};
  }
}

/**
 * Creates a key and writes its secret into the Secret. The secret exists only in this function, for the duration of the call. Creates no
 * key if the Secret is not writable.
 */
async function issue(
  { key, secret, successorOf }: Extract<ApiKeyAction, { type: "issue" }>,
  object: ManifestObject,
  ctx: Context,
): Promise<Applied> {
  const { secrets } = ctx.source;
  const { name, member, found } = secret;
  const refused = await secrets.check(object, { name, member, keyId: "none" }, found);
  if (refused !== undefined) return { verdict: verdictOn(refused, object) };
  const made = await ctx.api.call("keys.createKey", key, managementOf(ctx, object));
  if (made.refusal !== undefined) {
    // Another operator, or a call whose response was lost, has created the key. The next reconcile finds the key and revokes it.
    if (made.refusal.kind === "managed_exists")
      throw new Error(`a key is already being issued: ${made.refusal.detail}`);
    return made;
  }
  const { keyId, key: text } = made.data;
  const late = await secrets.write(object, { name, member, keyId, text }, found);
  if (late !== undefined) return { verdict: verdictOn(late, object) };
  await ctx.source.recordEvent(object, {
    type: "Normal",
    reason: successorOf === undefined ? "KeyIssued" : "KeyRotated",
    action: "Issue",
    note:
      successorOf === undefined
        ? `The key ${keyId} is in the Secret ${name}.`
        : `The key ${keyId} is in the Secret ${name}and replaces ${successorOf}.`,
  });
  return {};
}

/** A Secret of another type cannot be managed, even if its owner reference names this object. */
const verdictOn = (refused: string, { metadata: { namespace } }: ManifestObject) =>
  refused.startsWith("422") ? stalled("SecretNotOwned", refused) : missingRights(namespace, refused);

export function describeApiKey(action: ApiKeyAction): string {
  switch (action.type) {
    case "issue":
      return `issue a key for the Secret ${action.secret.name}`;
    case "update":
      return `set ${Object.keys(action.changes)
        .filter((field) => field !== "keyId")
        .join(", ")} of the key ${action.changes.keyId}`;
    case "revoke":
      return `revoke the key ${action.keyId}, because ${action.why}`;
    case "removeSecret":
      return `remove the Secret ${action.name}`;
  }
}
