import { listOwned, type OwnedRow } from "../../api-server/db/managed-owners.ts";
import { releaseManaged, transferManaged } from "../../api-server/domain/administration/managed.ts";
import { withWorkspace } from "../administration.ts";
import { defineCommand, UsageError } from "../command.ts";
import { type Fields, instantText, listShape } from "../fields.ts";
import { database, json, limit, workspace } from "../options.ts";
import { printList } from "../output.ts";
import { parseLimit } from "../values.ts";

const PART = /^[a-zA-Z0-9._-]{1,253}$/;

/** Parses a manager name or a prefix of one: up to four parts, separated by slashes. */
function parseManager(option: string, text: string): string {
  const parts = text.split("/");
  if (parts.length <= 4 && parts.every((part) => PART.test(part))) return text;
  throw new UsageError(
    `invalid value for --${option}: must be CLUSTER, CLUSTER/KIND, CLUSTER/KIND/NAMESPACE or CLUSTER/KIND/NAMESPACE/NAME`,
  );
}

const managedFields: Fields<OwnedRow> = [
  { name: "kind", title: "kind", value: (row) => row.kind },
  { name: "id", title: "id", value: (row) => row.id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "manager", title: "managed by", value: (row) => row.manager, shrinks: true },
  { name: "lastManager", title: "left by", value: (row) => row.last_manager, shrinks: true },
  {
    name: "releasedAt",
    title: "left",
    value: (row) => row.released_at,
    text: (row) => (row.released_at === null ? "" : instantText(row.released_at)),
  },
];

export const ownershipList = defineCommand({
  name: "ownership list",
  options: {
    manager: {
      type: "string",
      placeholder: "MANAGER",
      help: "filter by manager (CLUSTER/KIND/NAMESPACE/NAME) or a prefix such as CLUSTER",
    },
    workspace,
    limit,
    ...database,
    json,
  },
  response: listShape("objects", managedFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const manager = options.manager === undefined ? "" : parseManager("manager", options.manager);
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listOwned(db, { workspaceId, manager, rowsMax: max + 1 }),
    );
    printList(io, options, { resources: "objects", fields: managedFields, rows, max });
    return 0;
  },
});

export const ownershipTransfer = defineCommand({
  name: "ownership transfer",
  description:
    "Both names must have the same number of parts and the same kind. Compiled policies are not transferred, because each cluster stores its own. Prints the objects as they were before.",
  options: {
    from: {
      type: "string",
      placeholder: "MANAGER",
      help: "manager (CLUSTER/KIND/NAMESPACE/NAME) or a prefix such as CLUSTER",
      required: true,
    },
    to: { type: "string", placeholder: "MANAGER", help: "new manager or prefix", required: true },
    workspace,
    ...database,
    json,
  },
  response: listShape("objects", managedFields),
  run: async (options, io) => {
    const [from, to] = [parseManager("from", options.from), parseManager("to", options.to)];
    const [before, after] = [from.split("/"), to.split("/")];
    if (before.length !== after.length || before[1] !== after[1]) {
      throw new UsageError("--from and --to must have the same number of parts and the same kind");
    }
    const rows = await withWorkspace(options, (administrator, { id: workspaceId }) =>
      transferManaged(administrator, { workspaceId, from, to }),
    );
    printList(io, options, { resources: "objects", fields: managedFields, rows, max: rows.length });
    return 0;
  },
});

export const ownershipRelease = defineCommand({
  name: "ownership release",
  description:
    "For manifests that were deleted. Released objects stay in the database; a manifest needs spec.adopt to manage them. Prints the objects as they were before.",
  options: {
    manager: {
      type: "string",
      placeholder: "MANAGER",
      help: "manager (CLUSTER/KIND/NAMESPACE/NAME) or a prefix such as CLUSTER",
      required: true,
    },
    workspace,
    ...database,
    json,
  },
  response: listShape("objects", managedFields),
  run: async (options, io) => {
    const manager = parseManager("manager", options.manager);
    const rows = await withWorkspace(options, (administrator, { id: workspaceId }) =>
      releaseManaged(administrator, { workspaceId, manager }),
    );
    printList(io, options, { resources: "objects", fields: managedFields, rows, max: rows.length });
    return 0;
  },
});
