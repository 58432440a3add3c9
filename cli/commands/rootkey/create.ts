import { issueRootKey, ROOT_KEY_NAME_LENGTH_MAX } from "../../../api-server/domain/administration/root-keys.ts";
import type { RootKeySummary } from "../../../api-server/store/root-keys.ts";
import { rootKeyPermissionProblem, storedTuple } from "../../../core/permissions/root-key.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { type Fields, instantText, objectShape } from "../../fields.ts";
import { database, json, splitList, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseInstant, parseName } from "../../values.ts";

/** A request with the root key checks all of them. */
const PERMISSIONS_MAX = 1000;

type Made = Pick<RootKeySummary, "id" | "workspace_id" | "name" | "permissions" | "expires_at"> & { rootKey: string };

const madeFields: Fields<Made> = [
  { name: "rootKeyId", title: "id", value: (row) => row.id },
  {
    name: "rootKey",
    title: "root key",
    value: (row) => row.rootKey,
    text: (row) => `${row.rootKey}   (shown this once)`,
  },
  { name: "workspaceId", title: "workspace", value: (row) => row.workspace_id },
  {
    name: "permissions",
    title: "permissions",
    value: (row) => row.permissions,
    text: (row) => row.permissions.join(", "),
  },
  { name: "name", title: "name", value: (row) => row.name },
  {
    name: "expires",
    title: "expires",
    value: (row) => row.expires_at,
    text: (row) => instantText(row.expires_at, "never"),
  },
];

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
    workspace,
    name: { type: "string", placeholder: "TEXT", help: "its name in lists and audit rows" },
    expires: {
      type: "string",
      placeholder: "TIME",
      help: "when it expires: 2026-12-31, 2026-12-31T18:00:00Z, 30d",
    },
    ...database,
    json,
  },
  answer: objectShape(madeFields),
  run: async (options, io) => {
    const permissions = [...new Set(splitList(options.permissions).map(storedTuple))];
    if (permissions.length === 0) throw new UsageError("--permissions names none");
    if (permissions.length > PERMISSIONS_MAX) throw new UsageError(`--permissions names more than ${PERMISSIONS_MAX}`);
    for (const permission of permissions) {
      const problem = rootKeyPermissionProblem(permission);
      if (problem !== undefined) throw new UsageError(`"${permission}": ${problem}`);
    }
    const { expires } = options;
    const name =
      options.name === undefined ? null : parseName("name", options.name, { lengthMax: ROOT_KEY_NAME_LENGTH_MAX });
    const expiresAt =
      expires === undefined ? null : parseInstant("expires", expires, { nowMs: Date.now(), spans: "ahead" });
    const row = await withWorkspace(options, async (administrator, { id: workspaceId }) => {
      const { rootKeyId, rootKey } = await issueRootKey(administrator, {
        workspaceId,
        permissions,
        ...(name === null ? {} : { name }),
        ...(expiresAt === null ? {} : { expiresAtMs: expiresAt }),
      });
      return { id: rootKeyId, rootKey, workspace_id: workspaceId, permissions, name, expires_at: expiresAt };
    });
    printOne(io, options, { fields: madeFields, row });
    return 0;
  },
});
