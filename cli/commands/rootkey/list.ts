import { listRootKeys } from "../../../api-server/db/root-keys.ts";
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
  description: "Omits revoked root keys. The keys themselves are not stored.",
  options: {
    workspace,
    "v1-since": {
      type: "string",
      placeholder: "TIME",
      help: "filter: calls of API v1 since 2026-12-31 or 30d, in UTC days",
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
