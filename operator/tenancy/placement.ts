import { matches, type TenancySettings } from "./settings.ts";

/**
 * Label of a Namespace that names its workspace. Only cluster administrators can set it, because a team cannot change its own Namespace.
 */
export const WORKSPACE_LABEL = "postern.dev/workspace";

/**
 * Workspace of the objects of a namespace, or the `reason` why there is none. `unknown` means that the Namespace has not been listed yet.
 */
export type Placement =
  | { readonly workspace: string; readonly reason?: never }
  | { readonly workspace?: never; readonly reason: "unknown" | "none"; readonly message: string };

export interface Known {
  readonly settings: Pick<TenancySettings, "namespaceLabels" | "workspaces">;
  /** Workspace of namespaces that have neither a setting nor a label. */
  readonly byDefault: string | undefined;
  /** Returns the value of the Namespace's label; `undefined` if there is none, `UNSEEN` until the Namespace has been listed. */
  readonly labelOf: (namespace: string) => string | undefined | typeof UNSEEN;
  readonly hasRootKey: (workspace: string) => boolean;
}

export const UNSEEN = Symbol("a Namespace that is not listed yet");

/**
 * Returns the workspace of a namespace. Settings take precedence over the label, and the label over the default. A Namespace that has not
 * been listed yet has no workspace, because it may have a label.
 */
export function placementOf(namespace: string, { settings, byDefault, labelOf, hasRootKey }: Known): Placement {
  const rule = settings.workspaces.find(({ namespaces }) => namespaces.some((pattern) => matches(pattern, namespace)));
  const label = rule !== undefined || settings.namespaceLabels === "Ignore" ? undefined : labelOf(namespace);
  if (label === UNSEEN) {
    return {
      reason: "unknown",
      message: `The Namespace ${namespace} is not listed yet, so its workspace is unknown.`,
    };
  }
  const workspace = rule?.workspace ?? label ?? byDefault;
  if (workspace === undefined) {
    const message = `The namespace ${namespace} has no workspace. A cluster administrator can set the label ${WORKSPACE_LABEL} of the Namespace, or the operator's administrator a default workspace.`;
    return { reason: "none", message };
  }
  if (!hasRootKey(workspace)) {
    const message = `The namespace ${namespace} belongs to the workspace ${JSON.stringify(workspace)}, for which the operator has no root key. The operator's administrator can add a file with this name to --root-keys-dir.`;
    return { reason: "none", message };
  }
  return { workspace };
}
