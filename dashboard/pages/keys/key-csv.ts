import type { Schema } from "../../../core/api/procedures.ts";
import type { ImportedKey, KeyToImport } from "../../../core/keys/import-keys.ts";
import { KEY_HASH } from "../../../core/keys/key-hash.ts";
import { readCsv } from "./read-csv.ts";

/*
 * Reads and writes keys as CSV rows. An import reads every column that an export writes; only an import has the column `key`, because an
 * export contains no secrets. components/download.ts puts an apostrophe before text that a spreadsheet would run as a formula; the import
 * removes the apostrophe.
 */

export const ROWS_MAX = 10_000;
export const FILE_BYTES_MAX = 20 * 1024 * 1024;

export const EXPORT_COLUMNS = [
  "key_id",
  "start",
  "name",
  "external_id",
  "enabled",
  "expires",
  "created_at",
  "last_used_at",
  "credits",
  "refill_interval",
  "refill_amount",
  "refill_day",
  "roles",
  "permissions",
  "ratelimits",
  "meta",
] as const;

export const IMPORT_COLUMNS = [
  "key",
  "hash",
  ...EXPORT_COLUMNS.filter((name) => !["key_id", "start", "created_at", "last_used_at"].includes(name)),
] as const;

export interface ImportRow extends KeyToImport {
  readonly line: number;
}

export interface ImportProblem {
  readonly line: number;
  readonly problem: string;
}

export interface ImportTable {
  readonly rows: readonly ImportRow[];
  readonly problems: readonly ImportProblem[];
  /** Names of unknown columns, which are ignored. */
  readonly ignored: readonly string[];
}

export function readImport(text: string): ImportTable {
  const [head, ...lines] = readCsv(text);
  if (head === undefined) return { rows: [], problems: [{ line: 1, problem: "The file is empty." }], ignored: [] };
  const names = head.cells.map((name) => name.trim().toLowerCase());
  const known: readonly string[] = IMPORT_COLUMNS;
  const ignored = names.filter((name) => name !== "" && !known.includes(name));
  if (!names.includes("key") && !names.includes("hash")) {
    return {
      rows: [],
      problems: [{ line: head.line, problem: "The first line must name a column key or hash." }],
      ignored,
    };
  }
  if (lines.length > ROWS_MAX) {
    const problem = `The file has ${lines.length.toLocaleString("en")} rows; the maximum is ${ROWS_MAX.toLocaleString("en")}: split the file.`;
    return { rows: [], problems: [{ line: 1, problem }], ignored };
  }
  const rows: ImportRow[] = [];
  const problems: ImportProblem[] = [];
  const seen = new Map<string, number>();
  for (const { line, cells } of lines) {
    const cell = (name: string): string => plain(cells[names.indexOf(name)] ?? "");
    try {
      const row = readRow(line, cell);
      const twin = seen.get(row.secret ?? row.hash ?? "");
      if (twin !== undefined) throw new Problem(`has the same key as line ${twin}`);
      seen.set(row.secret ?? row.hash ?? "", line);
      rows.push(row);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      problems.push({ line, problem: error.message });
    }
  }
  return { rows, problems, ignored };
}

class Problem extends Error {}

/** Removes the apostrophe that an export or a spreadsheet put before a formula. */
const plain = (cell: string): string => (/^'[=+\-@\t\r\n＝＋－＠]/u.test(cell) ? cell.slice(1) : cell);

function readRow(line: number, cell: (name: string) => string): ImportRow {
  const [secret, hash] = [cell("key"), cell("hash")];
  if (secret === "" && hash === "") throw new Problem("has neither a key nor a hash");
  if (secret !== "" && hash !== "") throw new Problem("has both a key and a hash");
  if (hash !== "" && !KEY_HASH.test(hash)) {
    throw new Problem("has a hash that is not a SHA-256 digest in base64 (44 characters)");
  }
  const name = cell("name");
  const externalId = cell("external_id");
  const enabled = readBoolean("enabled", cell("enabled"));
  const expires = readTime("expires", cell("expires"));
  const credits = readCredits(cell);
  const roles = readList("roles", cell("roles"));
  const permissions = readList("permissions", cell("permissions"));
  const ratelimits = readJson("ratelimits", cell("ratelimits"), Array.isArray, "a JSON array");
  const meta = readJson("meta", cell("meta"), isObject, "a JSON object");
  return {
    line,
    secret: secret === "" ? undefined : secret,
    hash: hash === "" ? undefined : hash,
    key: {
      enabled: enabled ?? true,
      ...(name === "" ? {} : { name }),
      ...(externalId === "" ? {} : { externalId }),
      ...(expires === undefined ? {} : { expires }),
      ...(credits === undefined ? {} : { credits }),
      ...(roles === undefined ? {} : { roles }),
      ...(permissions === undefined ? {} : { permissions }),
      ...(ratelimits === undefined ? {} : { ratelimits: ratelimits as NonNullable<ImportedKey["ratelimits"]> }),
      ...(meta === undefined ? {} : { meta: meta as Record<string, unknown> }),
    },
  };
}

function readCredits(cell: (name: string) => string): ImportedKey["credits"] {
  const remaining = readCount("credits", cell("credits"));
  const interval = cell("refill_interval");
  if (interval === "") return remaining === undefined ? undefined : { remaining };
  if (interval !== "daily" && interval !== "monthly") throw new Problem("refill_interval is neither daily nor monthly");
  const amount = readCount("refill_amount", cell("refill_amount"));
  const refillDay = readCount("refill_day", cell("refill_day"));
  if (remaining === undefined || amount === undefined) throw new Problem("a refill requires credits and refill_amount");
  return { remaining, refill: { interval, amount, ...(refillDay === undefined ? {} : { refillDay }) } };
}

function readBoolean(name: string, text: string): boolean | undefined {
  if (text === "") return undefined;
  if (/^(?:true|yes|1)$/i.test(text)) return true;
  if (/^(?:false|no|0)$/i.test(text)) return false;
  throw new Problem(`${name} is neither true nor false`);
}

function readCount(name: string, text: string): number | undefined {
  if (text === "") return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new Problem(`${name} is not an integer`);
  return Number(text);
}

/** Parses Unix ms, or a time such as 2030-01-01T00:00:00Z. */
function readTime(name: string, text: string): number | undefined {
  if (text === "") return undefined;
  const ms = /^\d{1,15}$/.test(text) ? Number(text) : /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw new Problem(`${name} is not a time, such as 2030-01-01T00:00:00Z`);
  return ms;
}

/** Parses a JSON array of strings, or values that are separated by commas or semicolons. */
function readList(name: string, text: string): string[] | undefined {
  if (text === "") return undefined;
  if (!text.startsWith("[")) {
    return text
      .split(/[,;]/)
      .map((one) => one.trim())
      .filter((one) => one !== "");
  }
  const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((one) => typeof one === "string");
  return readJson(name, text, isTexts, "a JSON array of strings") as string[];
}

function readJson(name: string, text: string, fits: (value: unknown) => boolean, wanted: string): unknown {
  if (text === "") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Problem(`${name} is not ${wanted}`);
  }
  if (!fits(value)) throw new Problem(`${name} is not ${wanted}`);
  return value;
}

const isObject = (value: unknown): boolean => typeof value === "object" && value !== null && !Array.isArray(value);

type Key = Schema<"Key">;

/**
 * Returns the export row of a key, for `csvOf`. The row never contains a secret, because the export does not request the secrets of
 * recoverable keys.
 */
export const exportRow = (key: Key): Readonly<Record<(typeof EXPORT_COLUMNS)[number], unknown>> => ({
  key_id: key.keyId,
  start: key.start,
  name: key.name,
  external_id: key.identity?.externalId,
  enabled: key.enabled,
  expires: key.expires === undefined ? undefined : new Date(key.expires).toISOString(),
  created_at: new Date(key.createdAt).toISOString(),
  last_used_at: key.lastUsedAt === undefined ? undefined : new Date(key.lastUsedAt).toISOString(),
  credits: key.credits?.remaining,
  refill_interval: key.credits?.refill?.interval,
  refill_amount: key.credits?.refill?.amount,
  refill_day: key.credits?.refill?.refillDay,
  roles: key.roles,
  permissions: key.permissions,
  ratelimits: key.ratelimits?.map(({ name, limit, duration, autoApply }) => ({ name, limit, duration, autoApply })),
  meta: key.meta,
});
