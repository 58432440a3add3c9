import { PublicError } from "../../../core/errors.ts";
import type { KeyVault } from "../../keys/key-vault.ts";
import type { VaultDeps } from "../deps.ts";
import type { Grants, RequiredPermission } from "../permissions/required-permissions.ts";

/**
 * Checks the requirements for storing or returning a recoverable key, in this order: the server has encryption keys, the root key has the
 * permission, and key encryption is enabled for the API.
 * @throws PublicError 412, 403 or 412, respectively.
 */
export function requireKeyEncryption<Required extends RequiredPermission>(
  { deps, require }: { readonly deps: VaultDeps } & Pick<Grants<Required>, "require">,
  required: Required,
  { apiId, isEnabled }: { readonly apiId: string; readonly isEnabled: boolean },
): KeyVault {
  const { keyVault } = deps;
  if (keyVault === undefined) {
    throw new PublicError(
      "precondition_failed",
      "This server has no encryption keys, so it can neither store recoverable keys nor decrypt them.",
    );
  }
  require(required, apiId);
  if (!isEnabled) {
    throw new PublicError("precondition_failed", `Key encryption is not enabled for the API ${apiId}.`);
  }
  return keyVault;
}
