import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { id, keyIdFields } from "./fields.ts";

export const keyDelete = defineCommand({
  name: "key delete",
  description: "To reject it temporarily, use `postern key disable`. Requires delete_key on the API.",
  options: {
    id,
    permanent: { type: "boolean", help: "delete the row immediately, without retention" },
    ...connection,
    json,
  },
  response: objectShape(keyIdFields),
  run: async (options, io) => {
    const { id: keyId, permanent } = options;
    await withApi(options, io, (api) => api.call("keys.deleteKey", { keyId, ...(permanent ? { permanent } : {}) }));
    printOne(io, options, { fields: keyIdFields, row: { keyId }, sentence: `key ${keyId} is deleted` });
    return 0;
  },
});
