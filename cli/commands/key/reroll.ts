import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { instantText, objectShape, relativeText } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { parseFuture } from "../../values.ts";
import { printMade } from "./create.ts";
import { id, madeKeyFields } from "./fields.ts";

export const keyReroll = defineCommand({
  name: "key reroll",
  description:
    "The successor has a new id and the settings of the old key. Standard output has only the new key, as for `postern key create`. Both keys are valid until the old key expires. Requires create_key on the API.",
  options: {
    id,
    until: {
      type: "string",
      placeholder: "TIME|now",
      help: "expiry of the old key, such as 24h or 2026-12-31; never later than its current expiry",
      default: "24h",
    },
    ...connection,
    json,
  },
  response: objectShape(madeKeyFields),
  run: async (options, io) => {
    const { id: keyId, until } = options;
    const nowMs = Date.now();
    const untilMs = until === "now" ? nowMs : parseFuture("until", until, { nowMs, or: "now" });
    const expiration = Math.max(0, untilMs - nowMs);
    const { data: made } = await withApi(options, io, (api) => api.call("keys.rerollKey", { keyId, expiration }));
    const ends = expiration === 0 ? "has ended" : `ends ${instantText(untilMs)} (${relativeText(untilMs, nowMs)})`;
    printMade(io, options, { made, note: `key ${made.keyId} is created and shown only once; ${keyId} ${ends}` });
    return 0;
  },
});
