/** Returns the SQLSTATE, or the system's error code of a failed connection; undefined when the error has neither. */
export function failureCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

const constraintOf = (error: unknown): string | undefined =>
  error instanceof Error && "constraint" in error && typeof error.constraint === "string"
    ? error.constraint
    : undefined;

/** Serialization failure and deadlock: the transaction was rolled back in favour of another, and a retry may succeed. */
const LOST_RACES: ReadonlySet<string> = new Set(["40001", "40P01"]);
/** A row that was read a moment ago has been deleted since; a retry will find that out and tell the caller. */
const FOREIGN_KEY_VIOLATION = "23503";
const UNIQUE_VIOLATION = "23505";

/** Whether the same transaction may succeed when it is retried. */
export function isRetryable(error: unknown): boolean {
  const code = failureCode(error);
  if (code === undefined) return false;
  if (LOST_RACES.has(code) || code === FOREIGN_KEY_VIOLATION) return true;
  // Two random ids were equal: the retry draws a new one (api-v2.md section 5.1).
  return code === UNIQUE_VIOLATION && constraintOf(error)?.endsWith("_pkey") === true;
}

/** Lock not available, and query cancelled, which only a time limit causes, because no one cancels our statements. */
const WAIT_OVER: ReadonlySet<string | undefined> = new Set(["55P03", "57014"]);

/** Whether a statement failed because of a time limit. */
export const isWaitOver = (error: unknown): boolean => WAIT_OVER.has(failureCode(error));

/** Connection refused, reset or timed out: error codes of the operating system. */
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
/** SQLSTATE classes: connection exception, no such database, insufficient resources, operator intervention (shutdown, cancelled). */
const UNAVAILABLE_CLASSES: ReadonlySet<string> = new Set(["08", "3D", "53", "57"]);
/** `pg` sets no code on these errors. */
const UNAVAILABLE_MESSAGE =
  /timeout exceeded when trying to connect|timeout expired|Query read timeout|Connection terminated|Client has encountered a connection error|Cannot use a pool after calling end/;

/** Whether the database is unreachable or shutting down, as opposed to having refused a statement. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const code = failureCode(error);
  if (code !== undefined) return NETWORK_CODES.has(code) || UNAVAILABLE_CLASSES.has(code.slice(0, 2));
  return error instanceof Error && UNAVAILABLE_MESSAGE.test(error.message);
}

/** Whether the database is unreachable for all workspaces, as opposed to slow or refusing for one. */
export const isAwayForAll = (error: unknown): boolean => isDatabaseUnavailable(error) && !isWaitOver(error);

/** SQLSTATE class of a wrong password, an unknown user, or an address that may not connect. */
const REFUSED_CLASS = "28";

/** Why Postgres cannot be used now although it may be later; undefined: trying again does not help. Looks at causes, too. */
export function databaseTrouble(error: unknown): "away" | "refuses" | undefined {
  if (!(error instanceof Error)) return undefined;
  // A socket file that is missing, not one of our own files.
  const isOurFile = failureCode(error) === "ENOENT" && "syscall" in error && error.syscall !== "connect";
  if (isOurFile) return undefined;
  if (isDatabaseUnavailable(error)) return "away";
  // A database that is being set up refuses us until its users are made.
  if (failureCode(error)?.startsWith(REFUSED_CLASS) === true) return "refuses";
  return databaseTrouble(error.cause);
}
