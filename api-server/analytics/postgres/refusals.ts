import { failureCode, isDatabaseUnavailable } from "../../store/failures.ts";
import { QueryRejected } from "../contract.ts";

interface Refusal {
  readonly reason: QueryRejected["reason"];
  readonly detail: string;
}

const TIMEOUT: Refusal = { reason: "timeout", detail: "The query took longer than its time limit." };
const MEMORY: Refusal = { reason: "memory", detail: "The query needs more memory than its limit." };
const OUT_OF_RANGE: Refusal = { reason: "query", detail: "A number is out of the range of its type." };
const NO_TIME: Refusal = { reason: "query", detail: "A text is no date or time, or a time is out of range." };
const NO_NUMBER: Refusal = { reason: "query", detail: "A text is not a value of the type that it is converted to." };
const NO_PATTERN: Refusal = { reason: "query", detail: "The pattern of a LIKE ends in its escape character." };
const TOO_DEEP: Refusal = { reason: "query", detail: "The query is nested too deeply." };

/** By SQLSTATE. Postgres's own messages may name what is beneath the views, so none is passed on. */
const REFUSALS: ReadonlyMap<string, Refusal> = new Map([
  ["57014", TIMEOUT],
  // transaction_timeout, which ends the connection.
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
  // Partitions are made or dropped at this moment.
  ["55P03", { reason: "unavailable", detail: "The usage events are busy. Try again." }],
]);

/** What data of the query's own make an operation fail. */
const DATA_EXCEPTION = "22";
/** `palloc` refuses more than 1 GB with an internal error. */
const TOO_MUCH_FOR_ONE_VALUE = /invalid memory alloc request size|cannot enlarge string buffer/;

/**
 * Returns why Postgres did not answer a query, in words that concern the query alone. `isFault` tells an operator's business, or a mistake of ours, from
 * the caller's: it belongs into the log, with the cause.
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
