import { PublicError } from "../core/errors.ts";
import { type ActionOf, enoughFor, type PermissionType, type RootKeyPermission } from "../core/permissions/root-key.ts";

/*
 * What a procedure requires of a root key is declared once: its handler may require nothing else (`Call` in procedure.ts), the
 * OpenAPI document says it, and a test tries each procedure without each of them.
 */

export interface NeededPermission<Type extends PermissionType = PermissionType, Action extends string = string>
  extends RootKeyPermission<Type, Action> {
  readonly orFor?: "apiId" | "namespaceId" | "identityId" | "environment";
  /** When it is needed at all, in words such as "with `recoverable`"; absent when always. */
  readonly when?: string;
  /** The code with which v1 refuses a call that lacks it, where that is not INSUFFICIENT_PERMISSIONS (api-v1.md section 4). */
  readonly refusedAs?: "UNAUTHORIZED" | "NOT_FOUND";
}

/** Each under a name by which the handler requires it, in the order in which the OpenAPI document lists them. */
export type NeededPermissions = Readonly<Record<string, NeededPermission>>;

/**
 * The permissions of a root key, restricted to those that were declared. Properties and not methods, so that the
 * compiler compares their parameters: a helper accepts only calls whose procedure has declared what the helper requires.
 */
export interface Grants<Needed extends NeededPermission> {
  /**
   * @param id of the object of the call; without one only the form with `*` is enough.
   * @throws MissingPermission, which names what would have been enough and never what is held.
   */
  readonly require: (needed: Needed, id?: string) => void;
  /** The same check without an error. */
  readonly holds: (needed: Needed, id?: string) => boolean;
  /** Whether it is held for any object. */
  readonly holdsForSome: (needed: Needed) => boolean;
  /** The ids for which it is held one by one; "all" when it is held for every object. */
  readonly idsHeld: (needed: Needed) => "all" | readonly string[];
  /** Of these tuples, those that the caller does not hold and so may give to no root key. */
  readonly beyond: (tuples: readonly string[]) => readonly string[];
}

/** 403 `forbidden`: the root key lacks a permission, or the role of a person. */
export class MissingPermission extends PublicError {
  readonly needed: NeededPermission;

  constructor(needed: NeededPermission, id: string | undefined, holder = "The root key") {
    super("forbidden", `${holder} lacks the permission ${enoughFor(needed, id)}.`);
    this.needed = needed;
  }
}

/** Literal types throughout: two permissions have the same type only when they are the same permission. */
const declare =
  <Type extends PermissionType>(type: Type, orFor?: NeededPermission["orFor"]) =>
  <Action extends ActionOf<Type>>(action: Action, when?: string): NeededPermission<Type, Action> => ({
    type,
    action,
    tuple: `${type}.*.${action}`,
    ...(orFor === undefined ? {} : { orFor }),
    ...(when === undefined ? {} : { when }),
  });

/** On the API of the call: `A(x)` of api-v2.md section 1. */
export const onApi = declare("api", "apiId");
/** On no API in particular. */
export const onApis = declare("api");
/** On the rate-limit namespace of the call: `L(x)` of api-v2.md section 1. */
export const onNamespace = declare("ratelimit", "namespaceId");
/** On no rate-limit namespace in particular. */
export const onNamespaces = declare("ratelimit");
/** On the identity of the call: `I(x)` of api-v2.md section 1. In v2 only reading has a form with an id, in v1 deleting too. */
export const onIdentity = declare("identity", "identityId");
/** On the identities of an environment, which v1 lists (api-v1.md section 9). */
export const onIdentitiesOfEnvironment = declare("identity", "environment");
/** On no identity in particular. */
export const onIdentities = declare("identity");
/** On the workspace of the caller, its root keys, its audit log and its pods. */
export const onWorkspace = declare("workspace");
/** On all workspaces. */
export const onInstallation = declare("installation");
/** For roles and permissions, which have no tuples with ids: `R(x)` of api-v2.md section 1. */
export const onRbac = declare("rbac");

/** The same permission; v1 refuses a call that lacks it with 403 UNAUTHORIZED. */
export const refusedAsUnauthorized = <Needed extends NeededPermission>(needed: Needed): Needed => ({
  ...needed,
  refusedAs: "UNAUTHORIZED",
});

/** The same permission; for a caller of v1 who lacks it, what it would create does not exist: 404. */
export const refusedAsNotFound = <Needed extends NeededPermission>(needed: Needed): Needed => ({
  ...needed,
  refusedAs: "NOT_FOUND",
});

/** In Markdown: "`api.*.read_key` or `api.<apiId>.read_key`". */
export function describeNeeded({ tuple, orFor, when }: NeededPermission): string {
  const either = orFor === undefined ? `\`${tuple}\`` : `\`${tuple}\` or \`${tuple.replace("*", `<${orFor}>`)}\``;
  return when === undefined ? either : `${when}: ${either}`;
}
