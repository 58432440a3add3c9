import type { Data, FieldProblem, Input } from "../api/procedures.ts";

/*
 * Imports keys that were issued elsewhere, in batches. Used by the dashboard and the command line. Only the hash of a key is sent, never
 * the key itself.
 */

export type ImportedKey = Input<"keys.migrateKeys">["keys"][number];

/** A key that was issued elsewhere: the key itself, or its SHA-256 in base64. */
export interface KeyToImport {
  readonly secret: string | undefined;
  readonly hash: string | undefined;
  readonly key: Omit<ImportedKey, "hash">;
}

export interface ImportState<Row> {
  readonly migrationId: string | undefined;
  /** Number of rows processed so far. */
  readonly done: number;
  readonly made: number;
  /** Rows that were not imported, with the reason. */
  readonly failed: readonly { readonly row: Row; readonly problem: string }[];
}

export const NOT_STARTED = { migrationId: undefined, done: 0, made: 0, failed: [] } as const;

/** The API methods that an import requires. */
export interface ImportingApi {
  call<P extends "admin.startImport" | "keys.migrateKeys">(
    procedure: P,
    body: Input<P>,
    options: { readonly signal: AbortSignal },
  ): Promise<{ readonly data: Data<P> }>;
}

export interface ImportOptions<Row> {
  /** The keys to import, the API that gets them, and the name of the import in the audit log. */
  readonly what: { readonly apiId: string; readonly name: string; readonly rows: readonly Row[] };
  readonly api: ImportingApi;
  /** Returns the SHA-256 of the complete key in base64. */
  readonly hashOf: (secret: string) => string | Promise<string>;
  /** Returns the validation errors in an error response of the API; `undefined` for any other error. */
  readonly problemsOf: (error: unknown) => readonly FieldProblem[] | undefined;
  /** Callback that receives the state after each batch. */
  readonly report: (state: ImportState<Row>) => void;
  readonly signal: AbortSignal;
}

/** Rows per call. The server takes a few hundred milliseconds for a batch of this size, so the progress display is updated often. */
const BATCH = 200;

/**
 * Imports rows in batches, starting at `state`, and reports the state after each batch. A row that the server rejects is listed as failed,
 * and the rest of its batch is sent again. Throws the error of `api.call` if a batch could not be sent, so that the caller can resume from
 * the last reported state. If the server had processed that batch after all, the resumed import lists its keys as existing.
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
    const batch = rows.slice(done, done + BATCH);
    const outcome = await importBatch(batch, migrationId, options);
    made += outcome.made;
    failed.push(...outcome.failed);
    done += batch.length;
    tell();
  }
}

async function importBatch<Row extends KeyToImport>(
  rows: readonly Row[],
  migrationId: string,
  { what: { apiId }, api, hashOf, problemsOf, signal }: ImportOptions<Row>,
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
      const refused = refusedRows(problemsOf(error) ?? [], left.length);
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

/** Returns the rows of a batch that the server reports as invalid; empty if it rejected the batch for another reason. */
function refusedRows(faults: readonly FieldProblem[], rows: number): ReadonlyMap<number, string> {
  const refused = new Map<number, string>();
  for (const { location, message } of faults) {
    const [, place, field = ""] = /^body\.keys\[(\d+)\]\.?(.*)$/.exec(location) ?? [];
    if (place !== undefined && Number(place) < rows) refused.set(Number(place), `${field}: ${message}`);
  }
  return refused;
}
