import { findNamespace, findNamespaceByName } from "../../db/namespaces.ts";
import type { RequiredPermission } from "../../domain/permissions/required-permissions.ts";
import { invalidField, namespaceNotFound } from "../../domain/refusals/refusals.ts";
import type { CallNeeding } from "../../procedure.ts";

/** v1 names a namespace by one of two fields; the id wins. An empty text counts as left out. */
export interface NamespaceSelector {
  readonly namespaceId?: string | undefined;
  readonly namespaceName?: string | undefined;
}

/** Throws PublicError 400 when neither field is there. */
export function checkNamespaceSelector({ namespaceId = "", namespaceName = "" }: NamespaceSelector): void {
  if (namespaceId !== "" || namespaceName !== "") return;
  throw invalidField("body.namespaceId", "namespaceId or namespaceName is required");
}

/**
 * The id of the live namespace that the selector names. A name that looks like an id is not one.
 * @throws PublicError 403 for a caller that has the permission for no namespace, and so learns of none; then 404. Whether it has it for
 * this one is checked by the caller of this function.
 */
export async function selectNamespace<Required extends RequiredPermission>(
  call: CallNeeding<unknown, Required>,
  required: Required,
  { namespaceId = "", namespaceName = "" }: NamespaceSelector,
): Promise<string> {
  const { caller, deps } = call;
  const { workspaceId } = caller;
  if (!call.holdsForSome(required)) call.require(required, "<namespaceId>");
  if (namespaceId === "") {
    const found = await findNamespaceByName(deps.db, { workspaceId, name: namespaceName });
    if (found === undefined) throw namespaceNotFound(namespaceName);
    return found.id;
  }
  const found = await findNamespace(deps.db, { workspaceId, namespace: namespaceId });
  if (found?.id !== namespaceId) throw namespaceNotFound(namespaceId);
  return namespaceId;
}
