import type { QueryLimits } from "../contract.ts";

const MEGABYTE = 1024 * 1024;
/** Postgres gives each sort and hash of a plan as much, and a hash twice that: a query has some of them at once. */
const PARTS_OF_MEMORY = 16;
const WORK_MEM_BYTES_MIN = 4 * MEGABYTE;
const WORK_MEM_BYTES_MAX = 128 * MEGABYTE;
const TRANSACTION_GRACE_MS = 2_000;

const kilobytes = (bytes: number): string => `${Math.ceil(bytes / 1024)}kB`;

/** All that a query's transaction sets, where the server has it and the user may. Postgres cannot bound a query's memory as a whole. */
const SETTINGS: Readonly<Record<string, (limits: QueryLimits) => string>> = {
  statement_timeout: ({ timeoutMs }) => `${timeoutMs}ms`,
  transaction_timeout: ({ timeoutMs }) => `${timeoutMs + TRANSACTION_GRACE_MS}ms`,
  idle_in_transaction_session_timeout: () => "5s",
  lock_timeout: () => "1s",
  // Notices that the connection was given up while the query runs.
  client_connection_check_interval: () => "1s",
  work_mem: ({ memoryBytesMax }) =>
    kilobytes(Math.min(WORK_MEM_BYTES_MAX, Math.max(WORK_MEM_BYTES_MIN, memoryBytesMax / PARTS_OF_MEMORY))),
  temp_file_limit: ({ memoryBytesMax }) => kilobytes(memoryBytesMax),
  max_parallel_workers_per_gather: () => "1",
  // Ten times the default. Planning takes the view's bound of retention for one that a third of the rows pass, and nearly all do: a bitmap
  // of a whole partition seemed cheaper than reading it, and took two to three times as long.
  cpu_index_tuple_cost: () => "0.05",
  // Compiling takes longer than most queries, and memory of its own.
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

/** Returns the value of each setting that can be set. */
export const readingSettings = (limits: QueryLimits, settable: ReadonlySet<string>): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(SETTINGS)
      .filter(([name]) => settable.has(name))
      .map(([name, settingFor]) => [name, settingFor(limits)]),
  );
