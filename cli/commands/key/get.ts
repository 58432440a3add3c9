import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { printOne } from "../../output.ts";
import { decryptedKeyFields, id, keyDetailFields } from "./fields.ts";

export const keyGet = defineCommand({
  name: "key get",
  description: "Requires read_key on the API; --decrypt also requires decrypt_key.",
  options: {
    id,
    decrypt: { type: "boolean", help: "include the plaintext of a recoverable key, in JSON as `plaintext`" },
    ...connection,
    json,
  },
  response: objectShape(keyDetailFields),
  run: async (options, io) => {
    const body = { keyId: options.id, ...(options.decrypt ? { decrypt: true } : {}) };
    const { data: row } = await withApi(options, io, (api) => api.call("keys.getKey", body));
    printOne(io, options, { fields: options.decrypt ? decryptedKeyFields : keyDetailFields, row });
    return 0;
  },
});
