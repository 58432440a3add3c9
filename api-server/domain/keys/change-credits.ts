import { applyCreditsUpdate, type CreditsState } from "../../../core/credits/credits.ts";
import { insertAudit } from "../../db/audit.ts";
import { changeOf } from "../../db/audit-change.ts";
import { touchKey } from "../../db/key-changes.ts";
import type { Actor } from "../actor.ts";
import type { CreditsDeps } from "../deps.ts";
import { auditEvent, lockManaged } from "../managed/changes.ts";
import { MANAGED } from "../managed/resources.ts";
import type { RequiredPermission } from "../permissions/required-permissions.ts";
import { invalidField } from "../refusals/refusals.ts";
import { toCreditRow, toCreditsState } from "./credits.ts";
import { inCreditsTransaction } from "./credits-transaction.ts";

export interface CreditsChange<Required extends RequiredPermission> {
  readonly keyId: string;
  readonly operation: "set" | "increment" | "decrement";
  /** Value of the operation. With `set`, `null` makes the key unlimited. */
  readonly value: number | null | undefined;
  /** Permission that the root key needs on the key's API. */
  readonly needed: Required;
  /** Field of the request that contains the operation. Errors report it as the location of the problem. */
  readonly operationField: string;
}

/**
 * Sets, increments or decrements the current credits. Credits of a managed key can be changed by any caller, because manifests do not
 * contain credits.
 * @returns the credits after the change.
 * @throws PublicError 404, 403, and 400 if the operation is invalid for this key or lacks a value.
 */
export async function changeCreditsOfKey<Required extends RequiredPermission>(
  actor: Actor<Required, CreditsDeps>,
  change: CreditsChange<Required>,
): Promise<CreditsState> {
  const { caller, deps } = actor;
  const ref = { workspaceId: caller.workspaceId, keyId: change.keyId };
  return inCreditsTransaction(deps, ref, async (tx, changeCredits) => {
    const key = await lockManaged(tx, MANAGED.key, { workspaceId: caller.workspaceId, which: change.keyId });
    actor.require(change.needed, key.api_id);
    let before: CreditsState = { remaining: null };
    let next: CreditsState = { remaining: null };
    await changeCredits((current) => {
      before = toCreditsState(current);
      next = creditsAfter(before, change);
      return toCreditRow(next);
    });
    await touchKey(tx, { ...ref, manager: key.manager, updatedAt: deps.nowMs() });
    const changed = changeOf({ credits: before }, { credits: next });
    await insertAudit(tx, actor, [{ ...auditEvent(MANAGED.key, key, "Updated"), ...changed }]);
    return next;
  });
}

function creditsAfter(
  current: CreditsState,
  { operation, value, operationField }: Pick<CreditsChange<never>, "operation" | "value" | "operationField">,
): CreditsState {
  const next = applyCreditsUpdate(current, { operation, value });
  if (!("error" in next)) return next;
  const isValueInvalid = value === undefined || value === null || current.remaining !== null;
  throw invalidField(isValueInvalid ? "body.value" : operationField, next.error);
}
