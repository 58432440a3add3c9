import { PublicError } from "../../../core/errors.ts";
import {
  type ActionOf,
  enoughFor,
  type PermissionType,
  type RootKeyPermission,
} from "../../../core/permissions/root-key.ts";

/*
 * A permission that a procedure requires of a root key. The procedure declares it once: the handler cannot require an undeclared permission
 * (`Call` in procedure.ts), the OpenAPI document lists the declared ones, and a test calls the procedure without each of them.
 */

export interface RequiredPermission<Type extends PermissionType = PermissionType, Action extends string = string>
  extends RootKeyPermission<Type, Action> {
  readonly orFor?: "apiId" | "namespaceId" | "identityId" | "environment";
  /** Condition under which the permission is required, such as "with `recoverable`"; `undefined` if it is required for every call. */
  readonly when?: string;
  /** Code of v1's response to a call that lacks the permission, if it is not INSUFFICIENT_PERMISSIONS (api-v1.md section 4). */
  readonly refusedAs?: "UNAUTHORIZED" | "NOT_FOUND";
}

/** Required permissions, by the names that the handler uses, in the order in which the OpenAPI document lists them. */
export type RequiredPermissions = Readonly<Record<string, RequiredPermission>>;

/**
 * Permissions of a root key, restricted to those that the procedure declares. The members are properties, not methods, so that the compiler
 * compares their parameters strictly. As a result, a helper accepts only calls of procedures that declare every permission that the helper
 * requires.
 */
export interface Grants<Required extends RequiredPermission> {
  /**
   * Requires a permission.
   * @param id id of the object that the call is about; without it, only the form with `*` suffices.
   * @throws MissingPermission, which lists the permissions that would suffice, but never those that the caller holds.
   */
  readonly require: (required: Required, id?: string) => void;
  /** Like `require`, but returns whether the permission is held instead of throwing. */
  readonly holds: (required: Required, id?: string) => boolean;
  /** Returns whether the caller holds the permission for at least one object. */
  readonly holdsForSome: (required: Required) => boolean;
  /** Returns the ids of the objects for which the caller holds the permission; "all" if the caller holds it for every object. */
  readonly idsHeld: (required: Required) => "all" | readonly string[];
  /** Returns the given tuples that the caller does not hold, and is therefore not allowed to grant to a root key. */
  readonly beyond: (tuples: readonly string[]) => readonly string[];
}

/** Error 403 `forbidden`: the root key, or the user's role, lacks a permission. */
export class MissingPermission extends PublicError {
  readonly needed: RequiredPermission;

  constructor(required: RequiredPermission, id: string | undefined, holder = "The root key") {
    super("forbidden", `${holder} lacks the permission ${enoughFor(required, id)}.`);
    this.needed = required;
  }
}

/** The type parameters are literal types, so that two permissions have the same type only if they are the same permission. */
const declare =
  <Type extends PermissionType>(type: Type, orFor?: RequiredPermission["orFor"]) =>
  <Action extends ActionOf<Type>>(action: Action, when?: string): RequiredPermission<Type, Action> => ({
    type,
    action,
    tuple: `${type}.*.${action}`,
    ...(orFor === undefined ? {} : { orFor }),
    ...(when === undefined ? {} : { when }),
  });

/** Scope: the API of the call (`A(x)` in api-v2.md section 1). */
export const onApi = declare("api", "apiId");
/** Scope: all APIs. The tuple `api.*.ACTION` is required, because the call is not about a single API. */
export const onApis = declare("api");
/** Scope: the rate-limit namespace of the call (`L(x)` in api-v2.md section 1). */
export const onNamespace = declare("ratelimit", "namespaceId");
/** Scope: all rate-limit namespaces, because the call is not about a single namespace. */
export const onNamespaces = declare("ratelimit");
/**
 * Scope: the identity of the call (`I(x)` in api-v2.md section 1). In v2, only the read permission has a form with an id; in v1, the delete
 * permission also has one.
 */
export const onIdentity = declare("identity", "identityId");
/** Scope: the identities of an environment, which v1 lists (api-v1.md section 9). */
export const onIdentitiesOfEnvironment = declare("identity", "environment");
/** Scope: all identities, because the call is not about a single identity. */
export const onIdentities = declare("identity");
/** Scope: the caller's workspace, with its root keys, audit log and pods. */
export const onWorkspace = declare("workspace");
/** Scope: all workspaces. */
export const onInstallation = declare("installation");
/** Scope: all roles and permissions (`R(x)` in api-v2.md section 1). These tuples never contain an id. */
export const onRbac = declare("rbac");

/** Returns a copy of the permission, marked so that v1 responds with 403 UNAUTHORIZED to a caller without it. */
export const refusedAsUnauthorized = <Required extends RequiredPermission>(required: Required): Required => ({
  ...required,
  refusedAs: "UNAUTHORIZED",
});

/**
 * Returns a copy of the permission, marked so that v1 responds with 404 to a caller without it, as if the object to be created were not
 * found.
 */
export const refusedAsNotFound = <Required extends RequiredPermission>(required: Required): Required => ({
  ...required,
  refusedAs: "NOT_FOUND",
});

/** Returns Markdown such as "`api.*.read_key` or `api.<apiId>.read_key`". */
export function describeRequired({ tuple, orFor, when }: RequiredPermission): string {
  const either = orFor === undefined ? `\`${tuple}\`` : `\`${tuple}\` or \`${tuple.replace("*", `<${orFor}>`)}\``;
  return when === undefined ? either : `${when}: ${either}`;
}
