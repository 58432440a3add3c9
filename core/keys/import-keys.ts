import type { Data, Fault, Input } from "../api/procedures.ts";

/*
 * Keys that were issued elsewhere, sent to the API in portions. The dashboard and the command line import by it. A key itself is never sent: its hash
 * is.
 */

export type ImportedKey = Input<"keys.migrateKeys">["keys"][number];

/** A key that was issued elsewhere: with the key itself, or with its SHA-256 in base64. */
export interface KeyToImport {
  readonly secret: string | undefined;
  readonly hash: string | undefined;
  readonly key: Omit<ImportedKey, "hash">;
}

export interface ImportState<Row> {
  readonly migrationId: string | undefined;
  /** Rows that are settled, from the beginning. */
  readonly done: number;
  readonly made: number;
  /** Rows that were not imported, with the reason. */
  readonly failed: readonly { readonly row: Row; readonly problem: string }[];
}

export const NOT_STARTED = { migrationId: undefined, done: 0, made: 0, failed: [] } as const;

/** The API as an import needs it. */
export interface ImportingApi {
  call<P extends "admin.startImport" | "keys.migrateKeys">(
    procedure: P,
    body: Input<P>,
    options: { readonly signal: AbortSignal },
  ): Promise<{ readonly data: Data<P> }>;
}

export interface ImportOptions<Row> {
  /** What goes in, and what the audit log calls the import. */
  readonly what: { readonly apiId: string; readonly name: string; readonly rows: readonly Row[] };
  readonly api: ImportingApi;
  /** The SHA-256 of a whole key in base64. */
  readonly hashOf: (secret: string) => string | Promise<string>;
  /** The faults of an error with which the API refused input; undefined for any other error. */
  readonly faultsOf: (error: unknown) => readonly Fault[] | undefined;
  /** Hears of the state after each portion. */
  readonly report: (state: ImportState<Row>) => void;
  readonly signal: AbortSignal;
}

/** Rows of one call: some hundred milliseconds of the server's time, and a progress that moves. */
const PORTION = 200;

/**
 * Imports rows in portions, from where `state` stands, and reports after each. A row that the server refuses is left out and listed, and the rest of
 * its portion is sent again. Throws what `api.call` throws when a portion could not be sent, so that it can go on from the last state: a portion that
 * had arrived all the same is then listed as existing.
 */
export async function importKeys<Row extends KeyToImport>(
  options: ImportOptions<Row>,
  state: ImportState<Row> = NOT_STARTED,
): Promise<void> {
  const { what, api, report, signal } = options;
  const { apiId, name, rows } = what;
  let { migrationId, done, made } = state;
  const failed = [...state.failed];
  const tell = (): void => report({ migrationId, done, made, failed: [...failed] });
  if (migrationId === undefined) {
    ({ migrationId } = (await api.call("admin.startImport", { apiId, name }, { signal })).data);
    tell();
  }
  while (done < rows.length) {
    const portion = rows.slice(done, done + PORTION);
    const outcome = await importPortion(portion, migrationId, options);
    made += outcome.made;
    failed.push(...outcome.failed);
    done += portion.length;
    tell();
  }
}

async function importPortion<Row extends KeyToImport>(
  rows: readonly Row[],
  migrationId: string,
  { what: { apiId }, api, hashOf, faultsOf, signal }: ImportOptions<Row>,
): Promise<Pick<ImportState<Row>, "made" | "failed">> {
  const failed: { row: Row; problem: string }[] = [];
  let left = await Promise.all(
    rows.map(async (row) => ({ row, key: { ...row.key, hash: row.hash ?? (await hashOf(row.secret ?? "")) } })),
  );
  while (left.length > 0) {
    try {
      const keys = left.map(({ key }) => key);
      const { data } = await api.call("keys.migrateKeys", { apiId, migrationId, keys }, { signal });
      const existing = new Set(data.failed);
      for (const { row, key } of left) {
        if (existing.has(key.hash)) failed.push({ row, problem: "exists already; nothing was changed" });
      }
      return { made: data.migrated.length, failed };
    } catch (error) {
      const refused = refusedRows(faultsOf(error) ?? [], left.length);
      if (refused.size === 0) throw error;
      for (const [at, problem] of refused) {
        const row = left[at]?.row;
        if (row !== undefined) failed.push({ row, problem });
      }
      left = left.filter((_, at) => !refused.has(at));
    }
  }
  return { made: 0, failed };
}

/** The rows of a portion that the server names as wrong; empty when the refusal is about something else. */
function refusedRows(faults: readonly Fault[], rows: number): ReadonlyMap<number, string> {
  const refused = new Map<number, string>();
  for (const { location, message } of faults) {
    const [, place, field = ""] = /^body\.keys\[(\d+)\]\.?(.*)$/.exec(location) ?? [];
    if (place !== undefined && Number(place) < rows) refused.set(Number(place), `${field}: ${message}`);
  }
  return refused;
}
