/** The workspace that exists from the beginning. Each start looks for it by this name, and makes it where it is missing. */
export const DEFAULT_WORKSPACE = "default";

/**
 * The form of a Kubernetes label value, because manifests name workspaces in a label. Underscores are allowed inside, but not a name
 * that begins like an id, because an id wins over an equal name.
 */
export const WORKSPACE_NAME = /^(?!ws_)[A-Za-z0-9](?:[A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;

/** What is wrong with a workspace's name, as a text for the person who typed it; undefined when it is valid. */
export function workspaceNameProblem(name: string): string | undefined {
  if (WORKSPACE_NAME.test(name)) return undefined;
  return "a name has 1 to 63 letters, digits, dots, dashes and underscores, begins and ends with a letter or digit, and not with ws_";
}
