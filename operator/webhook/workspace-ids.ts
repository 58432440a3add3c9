import type { Logger } from "pino";
import type { Workspace, Workspaces } from "../tenancy/workspaces.ts";

/*
 * Resolves the workspace of a pod from its namespace, as for manifests (tenancy/placement.ts). A gate gets the workspace id at injection.
 * An operator has only the name and the root key of a workspace, so it requests the id from the API. One request per workspace is enough,
 * because the id never changes.
 */

export type WorkspaceOfPod =
  | { readonly workspaceId: string; readonly refused?: never }
  /** Reason why a pod of this namespace cannot be admitted. */
  | { readonly refused: string };

export interface WorkspaceIds {
  /** Returns the workspace. Reads the current Namespace, because its label may be newer than the operator's cache. */
  of(namespace: string): Promise<WorkspaceOfPod>;
  /** Requests the workspace id before a pod needs it, so that later pods are admitted while no api-server is available. */
  prepare(namespace: string): void;
}

export function createWorkspaceIds(
  workspaces: Pick<Workspaces, "resolve" | "confirm">,
  log: Pick<Logger, "warn">,
): WorkspaceIds {
  // Ids by workspace. When its root key is replaced, a workspace becomes a new object here, so its id is requested again.
  const ids = new WeakMap<Workspace, Promise<string>>();

  function idOf(workspace: Workspace): Promise<string> {
    const known = ids.get(workspace);
    if (known !== undefined) return known;
    const asked = askFor(workspace);
    ids.set(workspace, asked);
    asked.catch((error: unknown) => {
      ids.delete(workspace);
      log.warn({ workspace: workspace.name, err: error }, "workspace id cannot be read; the pod is rejected");
    });
    return asked;
  }

  return {
    of: async (namespace) => {
      await workspaces.confirm(namespace);
      const place = workspaces.resolve(namespace);
      if (place.reason !== undefined) return { refused: place.message };
      try {
        return { workspaceId: await idOf(place.workspace) };
      } catch {
        return { refused: "the id of its workspace is unknown, because no api-server has responded. Try again." };
      }
    },
    prepare: (namespace) => {
      const { workspace } = workspaces.resolve(namespace);
      // Ignores the error, because `idOf` has already logged it.
      if (workspace !== undefined) idOf(workspace).catch(() => undefined);
    },
  };
}

async function askFor({ api }: Workspace): Promise<string> {
  const { data, refusal } = await api.call("workspaces.getWorkspace", {});
  if (data === undefined) throw new Error(`workspaces.getWorkspace returned ${refusal.kind}: ${refusal.detail}`);
  return data.id;
}
