import { stringify } from "yaml";
import { ImportedKey } from "../../../api-server/v2/keys/migrateKeys.ts";
import { type ImportState, importKeys, NOT_STARTED } from "../../../core/keys/import-keys.ts";
import { hashKey } from "../../../core/keys/key-string.ts";
import { oneOf } from "../../accepts.ts";
import type { Api } from "../../api/client.ts";
import { withApi } from "../../api/connection.ts";
import { ApiRefusal } from "../../api/refusals.ts";
import { type Command, defineCommand, type Io, UsageError } from "../../command.ts";
import { type Fields, instantField, printable, printableJson } from "../../fields.ts";
import { DiscoveredKeys, type Found, type FoundKey, type OmittedKey } from "../../import/discovered-keys.ts";
import { FILE_BYTES_MAX, readDocuments, readText, WrongImport } from "../../import/documents.ts";
import type { findKongKeys } from "../../import/kong.ts";
import { connection, json } from "../../options.ts";
import { type Progress, withProgress } from "../../progress.ts";
import { formatTable } from "../../table.ts";
import { counted } from "../../values.ts";

/** A system whose keys can be imported. */
export interface System {
  /** Name of the system in help and messages. */
  readonly title: string;
  /** Description of the system's export file and of how to create it. */
  readonly file: string;
  readonly find: (
    documents: readonly unknown[],
    discovered: DiscoveredKeys,
    ttl: Parameters<typeof findKongKeys>[2],
  ) => void;
  /** Whether keys of the system may have a `ttl`. Its meaning is ambiguous, so the command then has the option `--ttl-is`. */
  readonly hasTtl?: true;
}

/** Maximum number of problems to list. A longer list would move the result out of view. The `--json` output lists all of them. */
const SHOWN_MAX = 20;
const ROWS_MAX = 1_000_000;

const TTL_MEANINGS = ["remaining", "total"] as const;

/** Options of all import commands. */
export const importOptions = {
  file: { type: "string", placeholder: "PATH", help: "input file; - is standard input", required: true },
  "api-id": {
    type: "string",
    placeholder: "ID",
    help: "API id (api_…) for the keys; optional with --dry-run",
  },
  "dry-run": { type: "boolean", help: "report without importing" },
} as const;

/** Describes the effect of an import. The text is part of the help of every import command. */
export const IMPORT_RULES =
  "Hashes the keys and sends only the hashes; owners keep using their keys. Groups become roles, and owners become identities. Prints route limits and denials as policy rules. The root key needs create_key on the API. Safe to repeat: existing keys stay unchanged. Exit code 1 if a key was not imported; each is listed with the reason.";

const options = {
  "ttl-is": {
    type: "string",
    placeholder: "remaining|total",
    help: "start of a key's ttl: the import (remaining) or created_at (total); if omitted, keys with a ttl are skipped",
    accepts: oneOf(...TTL_MEANINGS),
  },
  ...importOptions,
  ...connection,
  json,
} as const;

/** Returns the command `postern import SYSTEM`, which imports the keys of another system without issuing new ones. */
export function importCommand(name: string, { title, file, find, hasTtl }: System): Command {
  const { "ttl-is": ttlIs, ...usual } = options;
  return defineCommand({
    name: `import ${name}`,
    description: `Reads ${file}. ${IMPORT_RULES}`,
    // The cast gives `run` one type for both tables. It is safe because the value of an option that is not in the table is `undefined`.
    options: (hasTtl ? { ...usual, "ttl-is": ttlIs } : usual) as typeof options,
    response: '{"found","imported","left":[{"from","why"}],"notes","rules":[{"from","rule"}],"short","migrationId"}',
    run: async (given, io) => {
      const apiId = given["api-id"];
      if (apiId === undefined && !given["dry-run"]) {
        throw new UsageError("--api-id is required, except with --dry-run");
      }
      const discovered = new DiscoveredKeys();
      const isPiped = given.file === "-" && io.input !== undefined;
      const text = isPiped ? await io.input.read(FILE_BYTES_MAX) : readText(given.file);
      const ttl = TTL_MEANINGS.find((word) => word === given["ttl-is"]);
      find(readDocuments(text, isPiped ? "standard input" : given.file), discovered, { ttlIs: ttl, nowMs: Date.now() });
      const { keys, left } = checked(discovered);
      const { notes, rules, short } = discovered;
      if (keys.length + left.length + rules.length === 0)
        throw new WrongImport([`${given.file} contains no ${title} key; expected ${file}`, ...notes].join("; "));
      if (keys.length > ROWS_MAX) throw new WrongImport(`${given.file} has more than ${ROWS_MAX} keys; split the file`);
      const found = { keys, left, notes, rules, short };
      if (apiId === undefined || given["dry-run"]) return showPlan(io, found, given.json);
      const what = { apiId, name: `import from ${title}`, rows: found.keys };
      const state = await withProgress(io, given, { doing: "importing", resources: "keys" }, (progress) =>
        withApi(given, io, (api) => send(api, what, progress)),
      );
      return showOutcome(io, found, state, given.json);
    },
  });
}

/** Moves keys that the API would reject to the skipped keys, so that a dry run reports them as well. */
function checked({ keys, left }: DiscoveredKeys): { keys: FoundKey[]; left: OmittedKey[] } {
  const refused = [...left];
  const accepted = keys.filter((found) => {
    const { error } = ImportedKey.safeParse({ ...found.key, hash: found.hash ?? hashKey(found.secret ?? "") });
    if (error === undefined) return true;
    const [issue] = error.issues;
    refused.push({ from: found.from, why: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? "is invalid"}` });
    return false;
  });
  return { keys: accepted, left: refused };
}

async function send(
  api: Api,
  what: { readonly apiId: string; readonly name: string; readonly rows: readonly FoundKey[] },
  progress: Progress,
): Promise<ImportState<FoundKey>> {
  let last: ImportState<FoundKey> = NOT_STARTED;
  if (what.rows.length === 0) return last;
  const importing = importKeys<FoundKey>({
    what,
    api,
    hashOf: hashKey,
    problemsOf: (error) => (error instanceof ApiRefusal ? error.faults : undefined),
    report: (state) => {
      last = state;
      progress.at({ done: state.done, total: what.rows.length });
    },
    signal: new AbortController().signal,
  });
  try {
    await importing;
  } catch (error) {
    if (last.done === 0) throw error;
    const far = `${last.made} of ${what.rows.length} keys were imported; run the command again to continue`;
    throw new Error(`${error instanceof Error ? error.message : String(error)}; ${far}`, { cause: error });
  }
  return last;
}

const keyFields: Fields<FoundKey> = [
  { name: "from", title: "from", value: ({ from }) => from },
  { name: "owner", title: "owner", value: ({ key }) => key.externalId ?? null, shrinks: true },
  { name: "name", title: "name", value: ({ key }) => key.name ?? null, shrinks: true },
  { name: "roles", title: "roles", value: ({ key }) => key.roles?.join(", ") ?? null, shrinks: true },
  instantField({ name: "expires", title: "expires" }, ({ key }) => key.expires ?? null, "never"),
];

function showPlan(io: Io, found: Found, asJson: boolean): number {
  const { keys, left, notes, rules, short } = found;
  if (asJson) {
    const counts = { found: keys.length + left.length, imported: 0 };
    io.out(printableJson({ ...counts, left, notes, rules, short, migrationId: null }));
  } else {
    io.out(`${counted(keys.length, "key")} can be imported, ${left.length} cannot. Nothing was sent.`);
    if (keys.length > 0) for (const line of formatTable(keyFields, keys.slice(0, SHOWN_MAX), io.columns)) io.out(line);
    if (keys.length > SHOWN_MAX) io.out(`and ${keys.length - SHOWN_MAX} more`);
    sayRest(io, found);
  }
  return left.length === 0 ? 0 : 1;
}

function showOutcome(io: Io, found: Found, state: ImportState<FoundKey>, asJson: boolean): number {
  const left = [...found.left, ...state.failed.map(({ row: { from }, problem }) => ({ from, why: problem }))];
  const { notes, rules, short } = found;
  if (asJson) {
    const { made: imported, migrationId = null } = state;
    io.out(
      printableJson({ found: found.keys.length + found.left.length, imported, left, notes, rules, short, migrationId }),
    );
  } else {
    io.out(`${counted(state.made, "key")} imported, ${left.length} not.`);
    sayRest(io, { ...found, left });
  }
  return left.length === 0 ? 0 : 1;
}

function sayRest(io: Io, { left, notes, rules, short }: Found): void {
  if (rules.length > 0) io.out(`${counted(rules.length, "rule")} for spec.rules of the policy, not applied:`);
  for (const { rule } of rules) {
    io.out(printable(`- ${stringify(rule, { collectionStyle: "flow", lineWidth: 0 }).trimEnd()}`));
  }
  for (const { from, why } of left.slice(0, SHOWN_MAX)) io.note(printable(`not imported: ${from}: ${why}`));
  if (left.length > SHOWN_MAX) io.note(`and ${left.length - SHOWN_MAX} more; --json lists all`);
  for (const note of notes) io.note(printable(`note: ${note}`));
  if (short > 0) {
    io.note(
      `note: ${counted(short, "key")} of fewer than 22 characters: short keys can be guessed or recovered from their hashes. Replace them with keys.rerollKey`,
    );
  }
}
