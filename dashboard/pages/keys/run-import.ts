import { ApiError } from "../../api/api-error.ts";
import type { Api } from "../../api/client.ts";
import { hashKey, NO_HASHING } from "../../parts/hash-key.ts";
import type { ImportProblem, ImportRow } from "./key-csv.ts";

/** Rows of one call: some hundred milliseconds of the server's time, and a progress that moves. */
const PORTION = 200;

export interface ImportState {
  readonly migrationId: string | undefined;
  /** Rows that are settled, from the beginning. */
  readonly done: number;
  readonly made: number;
  /** Rows that were not imported, with the reason. */
  readonly failed: readonly ImportProblem[];
}

export const NOT_STARTED: ImportState = { migrationId: undefined, done: 0, made: 0, failed: [] };

/**
 * Imports rows in portions, from where `state` stands, and reports after each. A row that the server refuses is left out and listed, and the rest of
 * its portion is sent again. Throws `ApiError` when a portion could not be sent, so that it can go on from the last state: a portion that had arrived
 * all the same is then listed as existing.
 */
export async function runImport(
  api: Api,
  { apiId, name, rows }: { readonly apiId: string; readonly name: string; readonly rows: readonly ImportRow[] },
  state: ImportState,
  { report, signal }: { readonly report: (state: ImportState) => void; readonly signal: AbortSignal },
): Promise<void> {
  let { migrationId, done, made } = state;
  const failed = [...state.failed];
  const tell = (): void => report({ migrationId, done, made, failed: [...failed] });
  if (migrationId === undefined) {
    ({ migrationId } = (await api.call("admin.startImport", { apiId, name }, { signal })).data);
    tell();
  }
  while (done < rows.length) {
    const portion = rows.slice(done, done + PORTION);
    const outcome = await importPortion(api, { apiId, migrationId, rows: portion }, signal);
    made += outcome.made;
    failed.push(...outcome.failed);
    done += portion.length;
    tell();
  }
}

async function importPortion(
  api: Api,
  { apiId, migrationId, rows }: { apiId: string; migrationId: string; rows: readonly ImportRow[] },
  signal: AbortSignal,
): Promise<{ made: number; failed: ImportProblem[] }> {
  const failed: ImportProblem[] = [];
  let left = await Promise.all(
    rows.map(async (row) => ({ line: row.line, key: { ...row.key, hash: await hashOf(row) } })),
  );
  while (left.length > 0) {
    try {
      const keys = left.map(({ key }) => key);
      const { data } = await api.call("keys.migrateKeys", { apiId, migrationId, keys }, { signal });
      const existing = new Set(data.failed);
      for (const { line, key } of left) {
        if (existing.has(key.hash)) failed.push({ line, problem: "exists already; nothing was changed" });
      }
      return { made: data.migrated.length, failed };
    } catch (error) {
      const refused = refusedRows(error, left.length);
      if (refused === undefined) throw error;
      for (const [at, problem] of refused) {
        const row = left[at];
        if (row !== undefined) failed.push({ line: row.line, problem });
      }
      left = left.filter((_, at) => !refused.has(at));
    }
  }
  return { made: 0, failed };
}

async function hashOf({ secret, hash }: ImportRow): Promise<string> {
  if (hash !== undefined) return hash;
  const made = await hashKey(secret ?? "");
  if (made === undefined) throw new Error(NO_HASHING);
  return made;
}

/** The rows of a portion that the server names as wrong; undefined when the refusal is about something else. */
export function refusedRows(error: unknown, rows: number): ReadonlyMap<number, string> | undefined {
  if (!(error instanceof ApiError) || error.status !== 400) return undefined;
  const refused = new Map<number, string>();
  for (const { location, message } of error.faults) {
    const [, place, field = ""] = /^body\.keys\[(\d+)\]\.?(.*)$/.exec(location) ?? [];
    if (place !== undefined && Number(place) < rows) refused.set(Number(place), `${field}: ${message}`);
  }
  return refused.size === 0 ? undefined : refused;
}
