import {
  issueRootKey,
  ROOT_KEY_ENVIRONMENT,
  ROOT_KEY_NAME_LENGTH_MAX,
  ROOT_KEY_PERMISSIONS_MAX,
  readTuples,
} from "../../../api-server/domain/administration/root-keys.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, permissions as permissionsOption, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseFuture, parseName } from "../../values.ts";
import { madeRootKeyFields } from "./fields.ts";

export const rootkeyCreate = defineCommand({
  name: "rootkey create",
  description: "The root key is shown only once.",
  options: {
    permissions: {
      ...permissionsOption,
      help: "permissions, such as api.*.create_key,api.*.verify_key",
      required: true,
    },
    workspace,
    name: { type: "string", placeholder: "TEXT", help: "name in lists and the audit log" },
    environment: {
      type: "string",
      placeholder: "WORD",
      help: "label such as production, without effect",
    },
    expires: {
      type: "string",
      placeholder: "TIME",
      help: "expiry: 2026-12-31, 2026-12-31T18:00:00Z, 30d",
    },
    ...database,
    json,
  },
  response: objectShape(madeRootKeyFields),
  run: async (options, io) => {
    const { permissions: given } = options;
    const read = readTuples(given);
    if ("problem" in read) throw new UsageError(`"${given[read.at]}": ${read.problem}`);
    const permissions = [...read.tuples];
    if (permissions.length === 0) throw new UsageError("--permissions is empty");
    if (permissions.length > ROOT_KEY_PERMISSIONS_MAX)
      throw new UsageError(`--permissions names more than ${ROOT_KEY_PERMISSIONS_MAX}`);
    const { expires, environment = null } = options;
    if (environment !== null && !ROOT_KEY_ENVIRONMENT.test(environment)) {
      throw new UsageError(
        `invalid value "${environment}" for --environment: must be 1 to 64 letters, digits, dots, dashes and underscores, beginning with a letter or digit`,
      );
    }
    const name =
      options.name === undefined ? null : parseName("name", options.name, { lengthMax: ROOT_KEY_NAME_LENGTH_MAX });
    const expiresAt = expires === undefined ? null : parseFuture("expires", expires, { nowMs: Date.now() });
    const row = await withWorkspace(options, async (administrator, { id: workspaceId }) => {
      const { rootKeyId, rootKey } = await issueRootKey(administrator, {
        workspaceId,
        permissions,
        ...(name === null ? {} : { name }),
        ...(environment === null ? {} : { environment }),
        ...(expiresAt === null ? {} : { expiresAtMs: expiresAt }),
      });
      return {
        id: rootKeyId,
        rootKey,
        workspace_id: workspaceId,
        permissions,
        name,
        environment,
        expires_at: expiresAt,
      };
    });
    printOne(io, options, { fields: madeRootKeyFields, row });
    return 0;
  },
});
