import type { Queryable } from "./queryable.ts";

/** Returns the SQLSTATE, or the system error code of a failed connection; `undefined` if the error has neither. */
export function failureCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

const constraintOf = (error: unknown): string | undefined =>
  error instanceof Error && "constraint" in error && typeof error.constraint === "string"
    ? error.constraint
    : undefined;

/** Serialization failure and deadlock: the transaction was rolled back in favor of another, and a retry may succeed. */
const LOST_RACES: ReadonlySet<string> = new Set(["40001", "40P01"]);
/**
 * SQLSTATE of a missing referenced row, for example a row that was deleted concurrently. A retry finds that the row is missing, and reports
 * this to the caller.
 */
const FOREIGN_KEY_VIOLATION = "23503";
const UNIQUE_VIOLATION = "23505";

/** Whether a retry of the same transaction may succeed. */
export function isRetryable(error: unknown): boolean {
  const code = failureCode(error);
  if (code === undefined) return false;
  if (LOST_RACES.has(code) || code === FOREIGN_KEY_VIOLATION) return true;
  // Two random ids were equal, and a retry generates a new one (api-v2.md section 5.1).
  return code === UNIQUE_VIOLATION && constraintOf(error)?.endsWith("_pkey") === true;
}

/**
 * SQLSTATEs of a lock that is not available and of a canceled query. Postern itself never cancels queries, so a canceled query has exceeded
 * a time limit.
 */
const WAIT_OVER: ReadonlySet<string | undefined> = new Set(["55P03", "57014"]);

/** Whether a statement failed because of a time limit. */
export const isWaitOver = (error: unknown): boolean => WAIT_OVER.has(failureCode(error));

/** Operating system error codes: connection refused, reset or timed out. */
const NETWORK_CODES: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EPIPE",
  "ETIMEDOUT",
]);
/** SQLSTATE classes: connection exception, no such database, insufficient resources, operator intervention (shutdown, canceled). */
const UNAVAILABLE_CLASSES: ReadonlySet<string> = new Set(["08", "3D", "53", "57"]);
/** Messages of `pg` errors that have no code. */
const UNAVAILABLE_MESSAGE =
  /timeout exceeded when trying to connect|timeout expired|Query read timeout|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end/;

/** Whether the database is unreachable or shutting down, rather than having rejected a statement. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = failureCode(error);
  if (code !== undefined) return NETWORK_CODES.has(code) || UNAVAILABLE_CLASSES.has(code.slice(0, 2));
  return error instanceof Error && UNAVAILABLE_MESSAGE.test(error.message);
}

/** Whether the database is unreachable for all workspaces, rather than slow or failing for a single workspace. */
export const isUnavailableForAll = (error: unknown): boolean => isDatabaseUnavailable(error) && !isWaitOver(error);

/** SQLSTATE class of authentication failures: wrong password, unknown user, or an address that is not allowed to connect. */
const REFUSED_CLASS = "28";

/** Returns why Postgres is temporarily unavailable; `undefined` if a retry does not help. Also inspects the causes of the error. */
export function databaseProblem(error: unknown): "away" | "refuses" | undefined {
  if (!(error instanceof Error)) return undefined;
  // ENOENT of a connection attempt means a missing socket file. ENOENT of any other system call concerns one of Postern's own files.
  const isOurFile = failureCode(error) === "ENOENT" && "syscall" in error && error.syscall !== "connect";
  if (isOurFile) return undefined;
  if (isDatabaseUnavailable(error)) return "away";
  // While a database is being set up, it rejects connections until its users exist.
  if (failureCode(error)?.startsWith(REFUSED_CLASS) === true) return "refuses";
  return databaseProblem(error.cause);
}

/** Whether a statement failed because it violated the unique index or constraint with this name. */
export const isUniqueViolation = (error: unknown, constraint: string): boolean =>
  failureCode(error) === UNIQUE_VIOLATION && constraintOf(error) === constraint;

export interface WaitingBounds {
  readonly lockMsMax: number;
  readonly statementMsMax: number;
  /**
   * Maximum idle time between two statements. After this time, Postgres ends the transaction, because its process may hang. Default:
   * unlimited.
   */
  readonly idleMsMax?: number;
}

/**
 * Sets time limits for the rest of the transaction: a statement that waits for a lock or runs for too long fails with an error that
 * `isWaitOver` recognizes.
 */
export async function limitWaiting(
  tx: Queryable,
  { lockMsMax, statementMsMax, idleMsMax = 0 }: WaitingBounds,
): Promise<void> {
  const text = `select set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true),
                       set_config('idle_in_transaction_session_timeout', $3, true)`;
  const values = [lockMsMax, statementMsMax, idleMsMax].map((ms) => `${ms}ms`);
  await tx.query({ name: "limit-waiting", text, values });
}
