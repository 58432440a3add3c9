import { findIdentity, findIdentityIdByExternalId } from "../../db/identities.ts";
import { identityNotFound, invalidField } from "../../domain/refusals/refusals.ts";
import type { Call } from "../../procedure.ts";

/** Selects an identity by one of two fields; the id takes precedence. */
export interface IdentitySelector {
  readonly identityId?: string | undefined;
  readonly externalId?: string | undefined;
}

/** Throws PublicError 400 if both fields are missing. */
export function checkIdentitySelector({ identityId, externalId }: IdentitySelector): void {
  if (identityId !== undefined || externalId !== undefined) return;
  throw invalidField("body.identityId", "identityId or externalId is required");
}

/**
 * Returns the id of the selected live identity. The external id is compared only with external ids, never with ids.
 * @throws PublicError 404.
 */
export async function selectIdentity(
  { caller, deps }: Pick<Call<unknown>, "caller" | "deps">,
  { identityId, externalId = "" }: IdentitySelector,
): Promise<string> {
  const { workspaceId } = caller;
  if (identityId === undefined) {
    const id = await findIdentityIdByExternalId(deps.db, { workspaceId, externalId });
    if (id === undefined) throw identityNotFound(externalId);
    return id;
  }
  const found = await findIdentity(deps.db, { workspaceId, identity: identityId });
  if (found?.id !== identityId) throw identityNotFound(identityId);
  return identityId;
}
