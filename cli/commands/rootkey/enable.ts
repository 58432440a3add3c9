import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { changeOne } from "./change.ts";
import { id, rootKeyFields } from "./fields.ts";

const switching = (verb: "enable" | "disable") =>
  defineCommand({
    name: `rootkey ${verb}`,
    options: { id, workspace, ...database, json },
    response: objectShape(rootKeyFields),
    run: async (options, io) => {
      const row = await changeOne(options, { enabled: verb === "enable" });
      const effect = verb === "enable" ? "" : ": requests with it get 401";
      printOne(io, options, { fields: rootKeyFields, row, sentence: `root key ${row.id} is ${verb}d${effect}` });
      return 0;
    },
  });

export const rootkeyEnable = switching("enable");
export const rootkeyDisable = switching("disable");
