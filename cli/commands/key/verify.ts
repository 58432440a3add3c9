import type { Input } from "../../../core/api/procedures.ts";
import { withApi } from "../../api/connection.ts";
import { defineCommand } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { connection, json } from "../../options.ts";
import { EXIT_CODES_HELP, exitCodeOf } from "../../outcomes.ts";
import { printOne } from "../../output.ts";
import { invalidValue, parseInteger } from "../../values.ts";
import { verifiedFields } from "./fields.ts";
import { keyFile, readKeySecret } from "./secret.ts";

const COST_MAX = 1_000_000_000;

export const keyVerify = defineCommand({
  name: "key verify",
  description: `Reads the key from standard input, or prompts for it. Charges limits and credits as a request does (one credit, unless --credits 0); \`postern explain\` charges nothing. Requires verify_key on the API. ${EXIT_CODES_HELP}`,
  options: {
    "key-file": keyFile,
    permissions: {
      type: "string",
      placeholder: "QUERY",
      help: "permission query, such as 'orders.read OR admin'",
    },
    credits: { type: "string", placeholder: "N", help: "cost in credits (default 1)" },
    ratelimit: {
      type: "string",
      placeholder: "NAME[=COST]",
      help: "rate limit of the key or owner to charge",
      repeats: true,
    },
    tag: { type: "string", placeholder: "TEXT", help: "tag to store with the verification", repeats: true },
    ...connection,
    json,
  },
  response: objectShape(verifiedFields),
  run: async (options, io) => {
    const { permissions, credits, tag, ratelimit } = options;
    const charged: Omit<Input<"keys.verifyKey">, "key"> = {
      ...(permissions === undefined ? {} : { permissions }),
      ...(credits === undefined
        ? {}
        : { credits: { cost: parseInteger("credits", credits, { min: 0, max: COST_MAX }) } }),
      ...(tag.length === 0 ? {} : { tags: [...tag] }),
      ...(ratelimit.length === 0 ? {} : { ratelimits: ratelimit.map(parseCharge) }),
    };
    const key = await readKeySecret(io, options["key-file"]);
    const call = { key, ...charged };
    const { data: row } = await withApi(options, io, (api) => api.call("keys.verifyKey", call), [key]);
    printOne(io, options, { fields: verifiedFields, row });
    return exitCodeOf(row.code, row.valid);
  },
});

function parseCharge(text: string): { name: string; cost?: number } {
  const [name = "", cost, ...rest] = text.split("=");
  if (name === "" || rest.length > 0) throw invalidValue("ratelimit", text, "NAME or NAME=COST");
  return { name, ...(cost === undefined ? {} : { cost: parseInteger("ratelimit", cost, { min: 0, max: COST_MAX }) }) };
}
