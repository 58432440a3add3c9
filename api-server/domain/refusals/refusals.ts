import { PublicError } from "../../../core/errors.ts";
import type { Lookup } from "../../../edge/projection/contract.ts";

/*
 * Error for a missing API. Its text is the same whether the API never existed, was deleted, or belongs to another workspace (api-v2.md
 * section 4.3).
 */

export const apiNotFound = (apiId: string): PublicError =>
  new PublicError("api_not_found", `There is no API ${apiId} in the workspace.`);

export const keyNotFound = (keyId: string): PublicError =>
  new PublicError("key_not_found", `There is no key ${keyId} in the workspace.`);

/** Error for callers that identify a key by its string. The message omits the string, because responses never repeat a secret. */
export const keyOfSecretNotFound = (): PublicError =>
  new PublicError("key_not_found", "There is no key with this secret in the workspace.");

export const identityNotFound = (identity: string): PublicError =>
  new PublicError("identity_not_found", `There is no identity ${identity} in the workspace.`);

export const roleNotFound = (role: string): PublicError =>
  new PublicError("role_not_found", `There is no role ${role} in the workspace.`);

export const permissionNotFound = (permission: string): PublicError =>
  new PublicError("permission_not_found", `There is no permission ${permission} in the workspace.`);

export const namespaceNotFound = (namespace: string): PublicError =>
  new PublicError("ratelimit_namespace_not_found", `There is no rate-limit namespace ${namespace} in the workspace.`);

export const overrideNotFound = (override: string): PublicError =>
  new PublicError("ratelimit_override_not_found", `There is no override for ${override} in the namespace.`);

export const migrationNotFound = (migration: string): PublicError =>
  new PublicError("migration_not_found", `There is no migration ${migration} in the workspace.`);

export const policyNotFound = (policy: string): PublicError =>
  new PublicError("policy_not_found", `There is no policy ${policy} in the workspace.`);

/**
 * Error for a field whose value matches the schema but contradicts another field or stored data. `location` has the form
 * `body.credits.refill`.
 */
export const invalidField = (location: string, message: string): PublicError =>
  new PublicError("invalid_input", message, { errors: [{ location, message }] });

/**
 * Returns the value of a lookup; `undefined` if the value is known to be absent.
 * @throws PublicError 500 `service_unavailable` if the value is unknown, because the database is unreachable and the value is not cached.
 */
export function knownValue<T>(lookup: Lookup<T>): T | undefined {
  if (lookup.status === "unusable") throw notKnown();
  return lookup.status === "found" ? lookup.value : undefined;
}

/** Returns the error for a request that refers to an object that cannot be looked up at the moment. */
export const notKnown = (): PublicError =>
  new PublicError(
    "service_unavailable",
    "An object that the request refers to cannot be looked up at the moment; try again.",
  );
