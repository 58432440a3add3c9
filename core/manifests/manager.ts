import type { Kind } from "./index.ts";

/* A manager's name is `<cluster>/<kind>/<namespace>/<name>`. It identifies the manifest that manages an object. */

export interface ManifestName {
  readonly cluster: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

const PART = "[a-zA-Z0-9._-]{1,253}";

/** A manager's name: four non-empty parts. */
export const MANAGER = new RegExp(`^${PART}(?:/${PART}){3}$`);

/** Returns a manager's name. */
export const formatManager = ({ cluster, kind, namespace, name }: ManifestName): string =>
  `${cluster}/${kind}/${namespace}/${name}`;

/** Returns the manager's name of an ApiKeyPolicy. */
export const managerOfPolicy = (policy: Omit<ManifestName, "kind">): string =>
  formatManager({ ...policy, kind: "ApiKeyPolicy" });

/** Parses a manager's name; returns `undefined` for any other form. The kind may be unknown to this version. */
export function parseManager(manager: string): ManifestName | undefined {
  if (!MANAGER.test(manager)) return undefined;
  const [cluster = "", kind = "", namespace = "", name = ""] = manager.split("/");
  return { cluster, kind, namespace, name };
}

/** Like `parseManager`, for a name that has already been validated. Throws an error for any other form. */
export function requireManager(manager: string): ManifestName {
  const parsed = parseManager(manager);
  if (parsed === undefined) throw new Error(`invalid name of a manager: ${JSON.stringify(manager)}`);
  return parsed;
}

/**
 * Returns the qualified resource name, such as `role.postern.dev`. With the qualified name, kubectl finds a Postern kind even if another
 * group has the same kind, as RBAC has a Role.
 */
export const resourceOf = (kind: Kind | (string & {})): string => `${kind.toLowerCase()}.postern.dev`;

/**
 * Returns the command that opens the manifest in an editor, for a user with kubectl access to the cluster. Returns `undefined` if a part is
 * not a valid Kubernetes name: any caller with the permission can set a manager, and users paste the command into a shell.
 */
export function editCommand({ kind, namespace, name }: ManifestName): string | undefined {
  const isObject =
    /^[A-Z][A-Za-z]*$/.test(kind) && [namespace, name].every((part) => /^[a-z0-9][a-z0-9.-]*$/.test(part));
  return isObject ? `kubectl edit -n ${namespace} ${resourceOf(kind)}/${name}` : undefined;
}
