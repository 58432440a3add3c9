/**
 * Name of the workspace that always exists. An api-server looks the workspace up by this name when it starts, and creates it if it is
 * missing.
 */
export const DEFAULT_WORKSPACE = "default";

/**
 * Syntax of a workspace name. A name must be a valid Kubernetes label value, because manifests name workspaces in a label. Underscores are
 * allowed inside. A name must not begin like an id, because a text that could be both is taken as an id.
 */
export const WORKSPACE_NAME = /^(?!ws_)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** Returns an error message for an invalid workspace name; `undefined` if it is valid. */
export function workspaceNameProblem(name: string): string | undefined {
  if (WORKSPACE_NAME.test(name)) return undefined;
  return "a name has 1 to 63 letters, digits, dots, dashes and underscores, begins and ends with a letter or digit, and not with ws_";
}

/** Maximum quota, in requests per minute. It is far above the capacity of one installation. */
export const QUOTA_MAX = 1_000_000_000;
