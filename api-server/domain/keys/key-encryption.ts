import { PublicError } from "../../../core/errors.ts";
import type { KeyVault } from "../../key-vault.ts";
import type { Grants, NeededPermission } from "../../needed-permissions.ts";
import type { Call } from "../../procedure.ts";

/**
 * Checks what is needed to store or return a recoverable key, in this order: the server has encryption keys, the root key has the
 * permission, the API has key encryption.
 * @throws PublicError 412, 403, 412.
 */
export function requireKeyEncryption<Needed extends NeededPermission>(
  { deps, require }: Pick<Call<unknown>, "deps"> & Pick<Grants<Needed>, "require">,
  needed: Needed,
  { apiId, isEnabled }: { readonly apiId: string; readonly isEnabled: boolean },
): KeyVault {
  const { keyVault } = deps;
  if (keyVault === undefined) {
    throw new PublicError(
      "precondition_failed",
      "This server has no encryption keys, so that keys can be neither stored recoverably nor decrypted.",
    );
  }
  require(needed, apiId);
  if (!isEnabled) {
    throw new PublicError("precondition_failed", `Key encryption is not enabled for the API ${apiId}.`);
  }
  return keyVault;
}
