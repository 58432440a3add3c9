import type { RootKeySummary } from "../../../api-server/db/root-keys.ts";
import { changeRootKey } from "../../../api-server/domain/administration/root-keys.ts";
import { notFound, type WorkspaceOptions, withWorkspace } from "../../administration.ts";

/** Changes the root key of `--id`. Throws if the workspace has no such root key. */
export async function changeOne(
  options: WorkspaceOptions & { readonly id: string },
  change: { enabled?: boolean; expiresAt?: number | null },
): Promise<RootKeySummary> {
  const { id: rootKeyId } = options;
  return withWorkspace(options, async (administrator, workspace) => {
    const row = await changeRootKey(administrator, { workspaceId: workspace.id, rootKeyId, ...change });
    if (row === undefined) throw notFound(`root key ${rootKeyId}`, workspace, "rootkey list");
    return row;
  });
}
