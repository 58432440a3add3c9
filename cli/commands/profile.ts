import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import * as z from "zod";
import { parseApiUrl, parseTimeout, withConnection } from "../api/connection.ts";
import { defineCommand, type Io, UsageError } from "../command.ts";
import { type Fields, listShape, objectShape, printable } from "../fields.ts";
import { connection, json } from "../options.ts";
import { printList, printOne } from "../output.ts";
import { type Profile, parseProfileName, profileOf, profilesFile, readProfiles, writeProfiles } from "../profiles.ts";
import { checkRootKey } from "../root-key.ts";

export const name = { type: "string", placeholder: "NAME", help: "profile name", required: true } as const;

interface NamedProfile extends Omit<Profile, "rootKey"> {
  readonly name: string;
  readonly isCurrent: boolean;
}

/** Fields of a profile, except its root key. */
const profileFields: Fields<NamedProfile> = [
  { name: "name", title: "name", value: (row) => row.name },
  { name: "apiUrl", title: "server", value: (row) => row.apiUrl, shrinks: true },
  { name: "caFile", title: "authority", value: (row) => row.caFile ?? null, shrinks: true },
  { name: "current", title: "used", value: (row) => row.isCurrent, text: (row) => (row.isCurrent ? "yes" : "no") },
];

const INPUT_BYTES_MAX = 64 * 1024;

/** Members of the output of `postern rootkey create --json` that the command reads; other members are ignored. */
const Made = z.looseObject({ rootKey: z.string() });

export const profileAdd = defineCommand({
  name: "profile add",
  description:
    "Reads the root key from standard input, alone or as the output of `rootkey create --json`, or prompts for it. Tests it, and stores it in $XDG_CONFIG_HOME/postern/profiles.json, readable only by you. The first profile becomes the default.",
  options: {
    name,
    "api-url": { type: "string", placeholder: "URL", help: "URL of the api-server", required: true },
    "ca-file": { type: "string", placeholder: "PATH", help: connection["ca-file"].help },
    use: { type: "boolean", help: "make this the default profile" },
    replace: {
      type: "boolean",
      help: "overwrite an existing profile",
    },
    unchecked: { type: "boolean", help: "store the profile without a test request" },
    timeout: connection.timeout,
    json,
  },
  response: objectShape(profileFields),
  run: async (options, io) => {
    const file = profilesFile(io.env);
    const named = parseProfileName("name", options.name);
    const apiUrl = parseApiUrl(options["api-url"]);
    const timeoutMs = parseTimeout(options.timeout);
    const caFile = options["ca-file"] === undefined ? undefined : resolve(options["ca-file"]);
    // Checks the CA file and the name before the prompt for the root key.
    const ca = caFile === undefined ? undefined : readFileSync(caFile, "utf8");
    demandFree(readProfiles(file).profiles, named, options.replace);
    const rootKey = await readRootKey(io);
    if (!options.unchecked) {
      const tried = { url: apiUrl, rootKey, rootKeyFrom: "standard input", ca, timeoutMs };
      const { data } = await withConnection(tried, (api) => api.call("workspaces.getWorkspace", {}));
      io.note(`the root key belongs to workspace ${printable(data.name)}`);
    }
    // Reads the profiles again, because another command may have changed the file during the prompt.
    const { current, profiles } = readProfiles(file);
    demandFree(profiles, named, options.replace);
    const used = options.use || current === undefined ? named : current;
    const profile = { apiUrl, rootKey, ...(caFile === undefined ? {} : { caFile }) };
    writeProfiles(file, { current: used, profiles: { ...profiles, [named]: profile } });
    const row = { name: named, apiUrl, caFile, isCurrent: used === named };
    const sentence = `profile ${named} is stored in ${file}${row.isCurrent ? " as the default" : `; \`postern profile use --name ${named}\` makes it the default`}`;
    printOne(io, options, { fields: profileFields, row, sentence });
    return 0;
  },
});

function demandFree(profiles: object, named: string, replace: boolean): void {
  if (replace || !Object.hasOwn(profiles, named)) return;
  throw new UsageError(`profile ${named} already exists; set --replace to overwrite it`);
}

async function readRootKey({ input }: Io): Promise<string> {
  if (input === undefined) throw new UsageError("standard input is not available; pipe the root key into the command");
  const text = input.isTerminal ? await input.ask("root key (hidden): ") : await input.read(INPUT_BYTES_MAX);
  return checkRootKey(rootKeyIn(text), "standard input");
}

function rootKeyIn(text: string): string {
  if (!text.trimStart().startsWith("{")) return text;
  try {
    return Made.parse(JSON.parse(text)).rootKey;
  } catch {
    throw new UsageError(
      "the JSON on standard input has no member `rootKey`; expected the output of `postern rootkey create --json`",
    );
  }
}

export const profileList = defineCommand({
  name: "profile list",
  description: "Does not show the root keys.",
  options: { json },
  response: listShape("profiles", profileFields),
  run: async (options, io) => {
    const { current, profiles } = readProfiles(profilesFile(io.env));
    const rows = Object.entries(profiles)
      .map(([name, profile]) => ({ ...profile, name, isCurrent: name === current }))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    printList(io, options, { resources: "profiles", fields: profileFields, rows, max: rows.length });
    return 0;
  },
});

export const profileUse = defineCommand({
  name: "profile use",
  options: { name, json },
  response: objectShape(profileFields),
  run: async (options, io) => {
    const file = profilesFile(io.env);
    const all = readProfiles(file);
    const row = { ...profileOf(all, options.name), name: options.name, isCurrent: true };
    writeProfiles(file, { ...all, current: options.name });
    printOne(io, options, {
      fields: profileFields,
      row,
      sentence: `profile ${options.name} is the default: ${row.apiUrl}`,
    });
    return 0;
  },
});

export const profileRemove = defineCommand({
  name: "profile remove",
  description: "The root key stays valid; revoke it with `postern rootkey revoke`.",
  options: { name, json },
  response: objectShape(profileFields),
  run: async (options, io) => {
    const file = profilesFile(io.env);
    const { current, profiles } = readProfiles(file);
    const removed = profileOf({ profiles }, options.name);
    const { [options.name]: _, ...rest } = profiles;
    writeProfiles(file, { ...(current === options.name ? {} : { current }), profiles: rest });
    const row = { ...removed, name: options.name, isCurrent: false };
    const sentence = `profile ${options.name} is deleted; its root key stays valid until you revoke it`;
    printOne(io, options, { fields: profileFields, row, sentence });
    return 0;
  },
});
