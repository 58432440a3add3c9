import type { ApiSettings } from "../../../api-server/db/apis.ts";
import {
  changeApi,
  defaultPrefixProblem,
  describeApi,
  ipAllowListProblem,
} from "../../../api-server/domain/administration/apis.ts";
import { notFound, withWorkspace } from "../../administration.ts";
import { defineCommand, splitList, UsageError } from "../../command.ts";
import { objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseInteger, parseSwitch } from "../../values.ts";
import { apiFields } from "./list.ts";

/** Parsers of the settings. The command accepts any subset of these options. */
const readers: { readonly [Option in SettingOption]: (text: string) => Partial<ApiSettings> } = {
  "ip-allow-list": (text) => ({ ipAllowList: parseAddresses(text) }),
  "delete-protection": (text) => ({ deleteProtection: parseSwitch("delete-protection", text) }),
  "default-prefix": (text) => ({ defaultPrefix: parsePrefix(text) }),
  "default-byte-length": (text) => ({
    defaultByteLength:
      text === "none" ? null : parseInteger("default-byte-length", text, { min: 16, max: 255, or: "none" }),
  }),
  "key-encryption": (text) => ({ keyEncryption: parseSwitch("key-encryption", text) }),
};
type SettingOption =
  | "ip-allow-list"
  | "delete-protection"
  | "default-prefix"
  | "default-byte-length"
  | "key-encryption";

export const apiUpdate = defineCommand({
  name: "api update",
  description: "Omitted options keep their value. Existing keys keep their prefix and length.",
  options: {
    id: { type: "string", placeholder: "ID", help: "API id (api_…)", required: true },
    "ip-allow-list": {
      type: "string",
      placeholder: "LIST|none",
      help: "client addresses and CIDR blocks that may use the API's keys, such as 10.0.0.1,10.1.0.0/16,::1",
    },
    "delete-protection": { type: "string", placeholder: "on|off", help: "protection from `apis.deleteApi`" },
    "default-prefix": {
      type: "string",
      placeholder: "TEXT|none",
      help: "default prefix of new keys",
    },
    "default-byte-length": {
      type: "string",
      placeholder: "N|none",
      help: "default number of random bytes of new keys, 16 to 255; `none` means 16",
    },
    "key-encryption": {
      type: "string",
      placeholder: "on|off",
      help: "support for recoverable keys; the api-servers also need an encryption key",
    },
    workspace,
    ...database,
    json,
  },
  response: objectShape(apiFields),
  run: async (options, io) => {
    const { id: apiId } = options;
    const names = Object.keys(readers) as SettingOption[];
    const change: Partial<ApiSettings> = Object.assign(
      {},
      ...names.map((name) => {
        const text = options[name];
        return text === undefined ? {} : readers[name](text);
      }),
    );
    if (Object.keys(change).length === 0) {
      throw new UsageError(`no setting is given; set at least one of ${names.map((name) => `--${name}`).join(", ")}`);
    }
    const row = await withWorkspace(options, async (administrator, inWorkspace) => {
      const changed = await changeApi(administrator, { workspaceId: inWorkspace.id, apiId, change });
      if (changed === undefined) throw notFound(`API ${apiId}`, inWorkspace, "api list");
      return describeApi(changed);
    });
    printOne(io, options, { fields: apiFields, row });
    return 0;
  },
});

function parseAddresses(text: string): readonly string[] {
  if (text === "none") return [];
  const addresses = [...new Set(splitList(text))];
  if (addresses.length === 0) throw new UsageError("--ip-allow-list has no address; `none` removes the list");
  const problem = ipAllowListProblem(addresses);
  if (problem !== undefined) throw new UsageError(`--ip-allow-list: ${problem}`);
  return addresses;
}

function parsePrefix(text: string): string | null {
  if (text === "none") return null;
  const problem = defaultPrefixProblem(text);
  if (problem !== undefined) throw new UsageError(`--default-prefix: ${problem}`);
  return text;
}
