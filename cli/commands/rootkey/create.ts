import {
  issueRootKey,
  ROOT_KEY_ENVIRONMENT,
  ROOT_KEY_NAME_LENGTH_MAX,
  ROOT_KEY_PERMISSIONS_MAX,
  readTuples,
} from "../../../api-server/domain/administration/root-keys.ts";
import { grantsOfPerson, PERSON_ROLES } from "../../../core/permissions/person-roles.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { type Fields, instantText, objectShape } from "../../fields.ts";
import { database, json, permissions as permissionsOption, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { invalidValue, parseFuture, parseName } from "../../values.ts";

interface MadeRootKey {
  readonly id: string;
  readonly rootKey: string;
  readonly workspaceId: string;
  readonly permissions: readonly string[];
  readonly name: string | null;
  readonly environment: string | null;
  readonly expiresAt: number | null;
}

/** Fields of a new root key, whose secret is shown only once. */
const fields: Fields<MadeRootKey> = [
  { name: "rootKeyId", title: "id", value: (row) => row.id },
  {
    name: "rootKey",
    title: "root key",
    value: (row) => row.rootKey,
    text: (row) => `${row.rootKey}   (shown only once)`,
  },
  { name: "workspaceId", title: "workspace", value: (row) => row.workspaceId },
  {
    name: "permissions",
    title: "permissions",
    value: (row) => row.permissions,
    text: (row) => row.permissions.join(", "),
  },
  { name: "name", title: "name", value: (row) => row.name },
  { name: "environment", title: "environment", value: (row) => row.environment },
  {
    name: "expires",
    title: "expires",
    value: (row) => row.expiresAt,
    text: (row) => instantText(row.expiresAt, "never"),
  },
];

/** Changes the database directly, because the first root key of a workspace must exist before anything can call the API. */
export const rootkeyCreate = defineCommand({
  name: "rootkey create",
  description: "The root key is shown only once. The other `rootkey` commands call the API with a root key.",
  options: {
    permissions: { ...permissionsOption, help: "permissions, such as api.*.create_key,api.*.verify_key" },
    role: {
      type: "string",
      placeholder: PERSON_ROLES.join("|"),
      help: "dashboard role whose permissions are added",
    },
    workspace,
    name: { type: "string", placeholder: "TEXT", help: "name in lists and the audit log" },
    environment: {
      type: "string",
      placeholder: "WORD",
      help: "label, such as production; does not restrict the root key",
    },
    expires: {
      type: "string",
      placeholder: "TIME",
      help: "expiry, such as 2026-12-31 or 30d",
    },
    ...database,
    json,
  },
  response: objectShape(fields),
  run: async (options, io) => {
    const permissions = readPermissions(options);
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
      const { rootKeyId: id, rootKey } = await issueRootKey(administrator, {
        workspaceId,
        permissions,
        ...(name === null ? {} : { name }),
        ...(environment === null ? {} : { environment }),
        ...(expiresAt === null ? {} : { expiresAtMs: expiresAt }),
      });
      return { id, rootKey, workspaceId, permissions, name, environment, expiresAt };
    });
    printOne(io, options, { fields, row });
    return 0;
  },
});

/**
 * Returns the permissions of `--permissions` and `--role`, without duplicates. Throws `UsageError` if there are none, too many or invalid
 * ones.
 */
function readPermissions({
  permissions: given,
  role: named,
}: {
  readonly permissions: readonly string[];
  readonly role: string | undefined;
}): string[] {
  const role = PERSON_ROLES.find((one) => one === named);
  if (named !== undefined && role === undefined) throw invalidValue("role", named, `one of ${PERSON_ROLES.join(", ")}`);
  const all = [...given, ...(role === undefined ? [] : grantsOfPerson(role))];
  const read = readTuples(all);
  if ("problem" in read) throw new UsageError(`"${all[read.at]}": ${read.problem}`);
  if (read.tuples.length === 0) throw new UsageError("set --permissions or --role");
  if (read.tuples.length > ROOT_KEY_PERMISSIONS_MAX) {
    throw new UsageError(`--permissions names more than ${ROOT_KEY_PERMISSIONS_MAX}`);
  }
  return [...read.tuples];
}
