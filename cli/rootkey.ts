import { createRootKey, ensureWorkspace, findWorkspaceId } from "../api-server/domain/bootstrap.ts";
import { migrate } from "../api-server/store/migrate.ts";
import { createPool } from "../api-server/store/pool.ts";
import { rootKeyPermissionProblem } from "../core/permissions/root-key.ts";
import { defineCommand, UsageError } from "./command.ts";
import { findRunningDev } from "./dev-state.ts";
import { databaseUrl, dataDir, json, splitList } from "./options.ts";

const DEFAULT_WORKSPACE = "default";

export const rootkeyCreate = defineCommand({
  name: "rootkey create",
  summary: "make a root key with the permissions given",
  description:
    "Works on the database of DATABASE_URL, or of the `postern dev` that runs on --data. The key is shown this once.",
  options: {
    permissions: {
      type: "string",
      placeholder: "LIST",
      help: "what it may do, such as api.*.create_key,api.*.verify_key",
      required: true,
    },
    workspace: {
      type: "string",
      placeholder: "ID",
      help: "workspace it acts for; the default one is made when missing",
    },
    name: { type: "string", placeholder: "TEXT", help: "what audit rows call it" },
    "database-url": databaseUrl,
    data: dataDir,
    json,
  },
  run: async (options, io) => {
    const permissions = splitList(options.permissions);
    if (permissions.length === 0) throw new UsageError("--permissions names none");
    for (const permission of permissions) {
      const problem = rootKeyPermissionProblem(permission);
      if (problem !== undefined) throw new UsageError(`"${permission}": ${problem}`);
    }
    const url = options["database-url"] ?? findRunningDev(options.data)?.databaseUrl;
    if (url === undefined) {
      throw new UsageError(`no \`postern dev\` runs on ${options.data}: start it, or set DATABASE_URL`);
    }
    await migrate(url);
    const db = createPool(url);
    try {
      const workspaceId =
        options.workspace === undefined
          ? await ensureWorkspace(db, DEFAULT_WORKSPACE)
          : await findWorkspaceId(db, options.workspace);
      if (workspaceId === undefined) throw new UsageError(`there is no workspace ${options.workspace}`);
      const { rootKeyId, rootKey } = await createRootKey(db, {
        workspaceId,
        permissions,
        ...(options.name === undefined ? {} : { name: options.name }),
      });
      if (options.json) {
        io.out(JSON.stringify({ rootKeyId, rootKey, workspaceId, permissions }));
      } else {
        io.out(`root key     ${rootKey}   (shown this once)`);
        io.out(`id           ${rootKeyId}`);
        io.out(`workspace    ${workspaceId}`);
        io.out(`permissions  ${permissions.join(", ")}`);
      }
      return 0;
    } finally {
      await db.end();
    }
  },
});
