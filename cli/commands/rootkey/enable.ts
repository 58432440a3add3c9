import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { changeOne } from "./change.ts";
import { rootKeyFields } from "./fields.ts";
import { id } from "./id-option.ts";

export const rootkeyEnable = defineCommand({
  name: "rootkey enable",
  summary: "undo rootkey disable",
  options: { id, workspace, ...database, json },
  answer: objectShape(rootKeyFields),
  run: async (options, io) => {
    const row = await changeOne(options, { enabled: true });
    printOne(io, options, { fields: rootKeyFields, row, sentence: `root key ${row.id} is enabled` });
    return 0;
  },
});
