import { matches, type NamedKind, type NameGrant } from "./settings.ts";

/** A name that an object uses in its workspace. */
export interface NameUse {
  readonly kind: NamedKind;
  readonly name: string;
  readonly namespace: string;
  /** Name of the workspace; `undefined` if the operator has only one workspace, whose name is not configured. */
  readonly workspace: string | undefined;
}

/**
 * Returns whether a namespace may use a name. It may if no grant lists the name, or if a grant that lists the name also lists the
 * namespace.
 */
export function mayUseName(grants: readonly NameGrant[], { kind, name, namespace, workspace }: NameUse): boolean {
  const isListed = (pattern: string): boolean =>
    // The api-server compares role names case-insensitively.
    kind === "Role" ? matches(pattern.toLowerCase(), name.toLowerCase()) : matches(pattern, name);
  const about = grants.filter(
    (grant) =>
      grant.kinds.includes(kind) &&
      (grant.workspace === undefined || grant.workspace === workspace) &&
      grant.names.some(isListed),
  );
  return (
    about.length === 0 || about.some(({ namespaces }) => namespaces.some((pattern) => matches(pattern, namespace)))
  );
}
