import type { QueryLimits } from "../contract.ts";

const MEGABYTE = 1024 * 1024;
/** Divisor for `work_mem`. A query plan has several sorts and hashes. Each sort may use `work_mem`, and each hash twice as much. */
const PARTS_OF_MEMORY = 16;
const WORK_MEM_BYTES_MIN = 4 * MEGABYTE;
const WORK_MEM_BYTES_MAX = 128 * MEGABYTE;
const TRANSACTION_GRACE_MS = 2_000;

const kilobytes = (bytes: number): string => `${Math.ceil(bytes / 1024)}kB`;

/**
 * Settings of a query's transaction. Settings that the server lacks or the user may not set are omitted. Postgres has no limit for the
 * total memory of a query.
 */
const SETTINGS: Readonly<Record<string, (limits: QueryLimits) => string>> = {
  statement_timeout: ({ timeoutMs }) => `${timeoutMs}ms`,
  transaction_timeout: ({ timeoutMs }) => `${timeoutMs + TRANSACTION_GRACE_MS}ms`,
  idle_in_transaction_session_timeout: () => "5s",
  lock_timeout: () => "1s",
  // Detects during the query that the client has closed the connection.
  client_connection_check_interval: () => "1s",
  work_mem: ({ memoryBytesMax }) =>
    kilobytes(Math.min(WORK_MEM_BYTES_MAX, Math.max(WORK_MEM_BYTES_MIN, memoryBytesMax / PARTS_OF_MEMORY))),
  temp_file_limit: ({ memoryBytesMax }) => kilobytes(memoryBytesMax),
  max_parallel_workers_per_gather: () => "1",
  // Ten times Postgres' default. The planner assumes that a third of the rows satisfy the view's retention bound, but nearly all do. With
  // the default setting, the planner chose a bitmap scan of a complete partition, which took two to three times as long as a sequential
  // scan.
  cpu_index_tuple_cost: () => "0.05",
  // Disables JIT compilation, because it takes longer than most queries and uses memory that is not limited.
  jit: () => "off",
  row_security: () => "on",
  search_path: () => "pg_catalog, analytics, pg_temp",
  timezone: () => "UTC",
  datestyle: () => "ISO, YMD",
  intervalstyle: () => "postgres",
  bytea_output: () => "hex",
  extra_float_digits: () => "1",
};

export const SETTING_NAMES: readonly string[] = Object.keys(SETTINGS);

/** Returns the value of each setting that the user may set. */
export const readingSettings = (limits: QueryLimits, settable: ReadonlySet<string>): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(SETTINGS)
      .filter(([name]) => settable.has(name))
      .map(([name, settingFor]) => [name, settingFor(limits)]),
  );
