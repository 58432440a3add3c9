import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { id, keyIdFields } from "./fields.ts";

const switching = (verb: "enable" | "disable") =>
  defineCommand({
    name: `key ${verb}`,
    description: "Requires update_key on the API.",
    options: { id, ...connection, json },
    response: objectShape(keyIdFields),
    run: async (options, io) => {
      const { id: keyId } = options;
      await withApi(options, io, (api) => api.call("keys.updateKey", { keyId, enabled: verb === "enable" }));
      printOne(io, options, { fields: keyIdFields, row: { keyId }, sentence: `key ${keyId} is ${verb}d` });
      return 0;
    },
  });

export const keyEnable = switching("enable");
export const keyDisable = switching("disable");
