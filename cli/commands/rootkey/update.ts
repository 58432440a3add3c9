import { defineCommand } from "../../command.ts";
import { instantText, objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseInstant } from "../../values.ts";
import { changeOne } from "./change.ts";
import { id, rootKeyFields } from "./fields.ts";

export const rootkeyUpdate = defineCommand({
  name: "rootkey update",
  options: {
    id,
    expires: {
      type: "string",
      placeholder: "TIME|never",
      help: "expiry: 2026-12-31, 2026-12-31T18:00:00Z, 30d; a past time expires it immediately",
      required: true,
    },
    workspace,
    ...database,
    json,
  },
  response: objectShape(rootKeyFields),
  run: async (options, io) => {
    const { expires } = options;
    const how = { nowMs: Date.now(), spans: "ahead", or: "never" } as const;
    const expiresAt = expires === "never" ? null : parseInstant("expires", expires, how);
    const row = await changeOne(options, { expiresAt });
    const sentence = `root key ${row.id} expires: ${instantText(row.expires_at, "never")}`;
    printOne(io, options, { fields: rootKeyFields, row, sentence });
    return 0;
  },
});
