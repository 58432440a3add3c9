import type { Administrator } from "../../api-server/domain/administration/administrator.ts";
import { changeRootKey, issueRootKey } from "../../api-server/domain/administration/root-keys.ts";
import { createWorkspace } from "../../api-server/domain/administration/workspaces.ts";
import { OPERATOR_PERMISSIONS } from "../../core/permissions/operator.ts";
import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import type { HttpResponse, Store } from "./operator-world.ts";

export interface Team {
  readonly name: string;
  readonly workspaceId: string;
  /** Root key with every permission, for `call`. */
  readonly rootKey: string;
  /** Root key with the permissions of the operator. */
  readonly operatorKey: string;
  readonly administrator: Administrator;
  /** Sends `POST /v2/<procedure>` with a root key of the team. */
  call(procedure: string, body: unknown, rootKey?: string): Promise<HttpResponse>;
  /** Creates another root key with the permissions of the operator. */
  anotherKey(): Promise<string>;
  /** Disables all root keys of the team. */
  disableKeys(): Promise<void>;
}

/** Creates a workspace with its own root key, as `postern workspace create` and `postern rootkey create` do. */
export async function openTeam({ server }: Pick<Store, "server">, name: string): Promise<Team> {
  const administrator: Administrator = { ...server.deps, actor: { type: "cli", id: "test", name: "test" } };
  const workspace = await createWorkspace(administrator, { name, quotaPerMinute: null });
  if (workspace === undefined) throw new Error(`there is a workspace ${name} already`);
  const workspaceId = workspace.id;
  const issue = async (permissions = OPERATOR_PERMISSIONS) =>
    (await issueRootKey(administrator, { workspaceId, permissions })).rootKey;
  const [rootKey, operatorKey] = [await issue(ALL_GRANTS), await issue()];
  return {
    name,
    workspaceId,
    rootKey,
    administrator,
    operatorKey,
    anotherKey: () => issue(),
    disableKeys: async () => {
      const text = "select id from root_keys where workspace_id = $1 and deleted_at is null";
      for (const { id } of (await administrator.db.query(text, [workspaceId])).rows) {
        await changeRootKey(administrator, { workspaceId, rootKeyId: id, enabled: false });
      }
    },
    call: async (procedure, body, key = rootKey) => {
      const response = await fetch(`${server.url}/v2/${procedure}`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const answer = (await response.json()) as { data?: unknown; error?: unknown };
      return { status: response.status, data: answer.data, error: answer.error };
    },
  };
}
