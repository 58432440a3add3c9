import { failureCode, isDatabaseUnavailable } from "../../postgres/failures.ts";
import { QueryRejected } from "../contract.ts";

interface Refusal {
  readonly reason: QueryRejected["reason"];
  readonly detail: string;
}

const TIMEOUT: Refusal = { reason: "timeout", detail: "The query took longer than its time limit." };
const MEMORY: Refusal = { reason: "memory", detail: "The query needs more memory than its limit." };
const OUT_OF_RANGE: Refusal = { reason: "query", detail: "A number is out of the range of its type." };
const NO_TIME: Refusal = { reason: "query", detail: "A text is not a date or time, or a time is out of range." };
const NO_NUMBER: Refusal = { reason: "query", detail: "A string cannot be converted to the requested type." };
const NO_PATTERN: Refusal = { reason: "query", detail: "The pattern of a LIKE ends in its escape character." };
const TOO_DEEP: Refusal = { reason: "query", detail: "The query is nested too deeply." };

/** Rejections by SQLSTATE. Callers never receive Postgres's own messages, which may name internal objects beneath the views. */
const REFUSALS: ReadonlyMap<string, Refusal> = new Map([
  ["57014", TIMEOUT],
  // Error of `transaction_timeout`, which closes the connection.
  ["25P04", TIMEOUT],
  ["53000", MEMORY],
  ["53100", MEMORY],
  ["53200", MEMORY],
  ["53400", MEMORY],
  ["54000", MEMORY],
  ["22012", { reason: "query", detail: "Division by zero." }],
  ["22003", OUT_OF_RANGE],
  ["22007", NO_TIME],
  ["22008", NO_TIME],
  ["22P02", NO_NUMBER],
  ["22025", NO_PATTERN],
  ["54001", TOO_DEEP],
  // Error of a query that runs while partitions are being created or dropped.
  ["55P03", { reason: "unavailable", detail: "The usage data is locked by another operation. Try again." }],
]);

/** SQLSTATE class of errors caused by values in the query. */
const DATA_EXCEPTION = "22";
/** Postgres reports a request for more than 1 GB (`palloc`) as an internal error. */
const TOO_MUCH_FOR_ONE_VALUE = /invalid memory alloc request size|cannot enlarge string buffer/;

/**
 * Maps a Postgres error to a rejection whose text concerns only the query. `isFault` is true for internal errors and for problems that an
 * operator must solve; the caller of this function must log these with their cause.
 */
export function toRejection(error: unknown): { readonly refused: QueryRejected; readonly isFault: boolean } {
  const code = failureCode(error) ?? "";
  const known = REFUSALS.get(code);
  if (known !== undefined) return { refused: refused(known, error), isFault: false };
  if (error instanceof Error && TOO_MUCH_FOR_ONE_VALUE.test(error.message)) {
    return { refused: refused(MEMORY, error), isFault: false };
  }
  if (code.startsWith(DATA_EXCEPTION)) {
    const detail = "A value is outside of what an operation of the query accepts.";
    return { refused: refused({ reason: "query", detail }, error), isFault: false };
  }
  if (isDatabaseUnavailable(error)) {
    const detail = "The store of usage events cannot be reached.";
    return { refused: refused({ reason: "unavailable", detail }, error), isFault: true };
  }
  return { refused: refused({ reason: "query", detail: "The query cannot be run." }, error), isFault: true };
}

const refused = ({ reason, detail }: Refusal, cause: unknown): QueryRejected =>
  new QueryRejected(reason, detail, { cause });
