import type { Kind } from "./index.ts";

/*
 * The name by which the store knows a manifest that manages an object: `<cluster>/<kind>/<namespace>/<name>`.
 */

export interface ManifestName {
  readonly cluster: string;
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

const PART = "[a-zA-Z0-9._-]{1,253}";

/** A manager's name: four parts, none of them empty. */
export const MANAGER = new RegExp(`^${PART}(?:/${PART}){3}$`);

/** Returns undefined for a text of another form. The kind need not be one of this release. */
export function parseManager(manager: string): ManifestName | undefined {
  if (!MANAGER.test(manager)) return undefined;
  const [cluster = "", kind = "", namespace = "", name = ""] = manager.split("/");
  return { cluster, kind, namespace, name };
}

/** `role.postern.dev`: how kubectl finds a kind of ours, also where another group has a kind of that name, as RBAC has a Role. */
export const resourceOf = (kind: Kind | (string & {})): string => `${kind.toLowerCase()}.postern.dev`;

/**
 * The command that opens the manifest in an editor, for a person whose kubectl reaches the cluster. undefined for parts that no object in
 * Kubernetes has: any caller with the permission may name a manager, and this text is copied into a shell.
 */
export function editCommand({ kind, namespace, name }: ManifestName): string | undefined {
  const isObject =
    /^[A-Z][A-Za-z]*$/.test(kind) && [namespace, name].every((part) => /^[a-z0-9][a-z0-9.-]*$/.test(part));
  return isObject ? `kubectl edit -n ${namespace} ${resourceOf(kind)}/${name}` : undefined;
}
