import { findNamespace, findNamespaceByName } from "../../db/namespaces.ts";
import type { RequiredPermission } from "../../domain/permissions/required-permissions.ts";
import { invalidField, namespaceNotFound } from "../../domain/refusals/refusals.ts";
import type { CallNeeding } from "../../procedure.ts";

/** Selects a namespace by one of two fields; the id takes precedence. An empty string counts as omitted. */
export interface NamespaceSelector {
  readonly namespaceId?: string | undefined;
  readonly namespaceName?: string | undefined;
}

/** Throws PublicError 400 if both fields are missing. */
export function checkNamespaceSelector({ namespaceId = "", namespaceName = "" }: NamespaceSelector): void {
  if (namespaceId !== "" || namespaceName !== "") return;
  throw invalidField("body.namespaceId", "namespaceId or namespaceName is required");
}

/**
 * Returns the id of the selected live namespace. The name is compared only with names, never with ids. The caller of this function must
 * check the permission for the namespace.
 * @throws PublicError 403 if the root key has the permission for no namespace at all, so that the error does not reveal which namespaces
 * exist; otherwise 404 if there is no such live namespace.
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
