import { listRootKeys } from "../../../api-server/store/root-keys.ts";
import { utcDate } from "../../../core/utc-date.ts";
import { withWorkspace } from "../../administration.ts";
import { defineCommand } from "../../command.ts";
import { listShape } from "../../fields.ts";
import { database, json, limit, workspace } from "../../options.ts";
import { printList } from "../../output.ts";
import { parseInstant, parseLimit } from "../../values.ts";
import { rootKeyFields } from "./fields.ts";

export const rootkeyList = defineCommand({
  name: "rootkey list",
  summary: "list the root keys of a workspace, oldest first",
  description: "Without revoked ones. The keys themselves are not stored, so no list can show them.",
  options: {
    workspace,
    "v1-since": {
      type: "string",
      placeholder: "TIME",
      help: "only those that called v1 of the API since: 2026-12-31, 30d; days are those of UTC",
    },
    limit,
    ...database,
    json,
  },
  response: listShape("rootKeys", rootKeyFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const since = options["v1-since"];
    const v1UsedSince =
      since === undefined ? null : utcDate(parseInstant("v1-since", since, { nowMs: Date.now(), spans: "back" }));
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listRootKeys(db, { workspaceId, v1UsedSince, rowsMax: max + 1 }),
    );
    printList(io, options, { resources: "rootKeys", fields: rootKeyFields, rows, max });
    return 0;
  },
});
