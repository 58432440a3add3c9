import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { keyIdFields } from "./fields.ts";
import { id } from "./id-option.ts";

export const keyEnable = defineCommand({
  name: "key enable",
  summary: "undo key disable",
  description: "Needs update_key on the API.",
  options: { id, ...connection, json },
  answer: objectShape(keyIdFields),
  run: async (options, io) => {
    const { id: keyId } = options;
    await withApi(options, io, (api) => api.call("keys.updateKey", { keyId, enabled: true }));
    printOne(io, options, { fields: keyIdFields, row: { keyId }, sentence: `key ${keyId} is enabled` });
    return 0;
  },
});
