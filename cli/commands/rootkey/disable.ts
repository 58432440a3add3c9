import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { changeOne } from "./change.ts";
import { rootKeyFields } from "./fields.ts";
import { id } from "./id-option.ts";

export const rootkeyDisable = defineCommand({
  name: "rootkey disable",
  summary: "refuse a root key until it is enabled again",
  options: { id, workspace, ...database, json },
  answer: objectShape(rootKeyFields),
  run: async (options, io) => {
    const row = await changeOne(options, { enabled: false });
    const sentence = `root key ${row.id} is disabled: requests with it get 401`;
    printOne(io, options, { fields: rootKeyFields, row, sentence });
    return 0;
  },
});
