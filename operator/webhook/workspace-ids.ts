import type { Logger } from "pino";
import type { Workspace, Workspaces } from "../tenancy/workspaces.ts";

/*
 * The workspace of a pod is that of its namespace, as for manifests (tenancy/placement.ts), and a gate is told its id when it is injected.
 * Operators know workspaces by name and by root key. The API says the id of a root key's workspace; it never changes, so each is asked
 * for once.
 */

export type WorkspaceOfPod =
  | { readonly workspaceId: string; readonly refused?: never }
  /** Why a pod of this namespace cannot be admitted. */
  | { readonly refused: string };

export interface WorkspaceIds {
  /** Looks at the Namespace as it is now: its label may be newer than what the operator has seen. */
  of(namespace: string): Promise<WorkspaceOfPod>;
  /** Asks for the id before a pod needs it, so that later pods are admitted also while no api-server answers. */
  prepare(namespace: string): void;
}

export function createWorkspaceIds(
  workspaces: Pick<Workspaces, "placeOf" | "confirm">,
  log: Pick<Logger, "warn">,
): WorkspaceIds {
  // A workspace whose root key changes is another object, and is asked for again.
  const ids = new WeakMap<Workspace, Promise<string>>();

  function idOf(workspace: Workspace): Promise<string> {
    const known = ids.get(workspace);
    if (known !== undefined) return known;
    const asked = askFor(workspace);
    ids.set(workspace, asked);
    asked.catch((error: unknown) => {
      ids.delete(workspace);
      log.warn({ workspace: workspace.name, err: error }, "the id of a workspace is not known");
    });
    return asked;
  }

  return {
    of: async (namespace) => {
      await workspaces.confirm(namespace);
      const place = workspaces.placeOf(namespace);
      if (place.reason !== undefined) return { refused: place.message };
      try {
        return { workspaceId: await idOf(place.workspace) };
      } catch {
        return { refused: "the id of its workspace is not known, because no api-server has told it. Try again." };
      }
    },
    prepare: (namespace) => {
      const { workspace } = workspaces.placeOf(namespace);
      // Logged by `idOf`.
      if (workspace !== undefined) idOf(workspace).catch(() => undefined);
    },
  };
}

async function askFor({ api }: Workspace): Promise<string> {
  const { data, refusal } = await api.call("workspaces.getWorkspace", {});
  if (data === undefined) throw new Error(`workspaces.getWorkspace answered ${refusal.kind}: ${refusal.detail}`);
  return data.id;
}
