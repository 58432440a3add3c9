import { QueryRejected } from "../contract.ts";
import { errorType, isUnavailable } from "./store-problem.ts";

type Refusal = readonly [reason: QueryRejected["reason"], detail: string];

const TIMEOUT: Refusal = ["timeout", "The query took longer than its time limit."];
const MEMORY: Refusal = ["memory", "The query needs more memory than its limit."];
const ROWS: Refusal = ["rows", "The answer has more rows than its limit."];
const SYNTAX: Refusal = ["query", "The query cannot be run in this form."];

/**
 * Rejections by ClickHouse error name. Callers never receive ClickHouse's own messages, which contain internal table names, column names
 * and SQL.
 */
const REFUSALS: ReadonlyMap<string, Refusal> = new Map([
  ["TIMEOUT_EXCEEDED", TIMEOUT],
  ["TOO_SLOW", TIMEOUT],
  ["SOCKET_TIMEOUT", TIMEOUT],
  ["MEMORY_LIMIT_EXCEEDED", MEMORY],
  ["TOO_LARGE_ARRAY_SIZE", MEMORY],
  ["TOO_LARGE_STRING_SIZE", MEMORY],
  ["SET_SIZE_LIMIT_EXCEEDED", MEMORY],
  ["CANNOT_ALLOCATE_MEMORY", MEMORY],
  ["TOO_MANY_ROWS_OR_BYTES", ROWS],
  ["TOO_MANY_ROWS", ROWS],
  ["TOO_MANY_BYTES", MEMORY],
  ["ILLEGAL_DIVISION", ["query", "Division by zero."]],
  ["CANNOT_PARSE_DATETIME", ["query", "A text is no date or time."]],
  ["CANNOT_PARSE_DATE", ["query", "A text is no date or time."]],
  ["CANNOT_PARSE_TEXT", ["query", "A string cannot be converted to the requested type."]],
  ["CANNOT_PARSE_NUMBER", ["query", "A string cannot be converted to the requested type."]],
  ["CANNOT_PARSE_ESCAPE_SEQUENCE", ["query", "The pattern of a LIKE ends in its escape character."]],
  ["CANNOT_COMPILE_REGEXP", ["query", "A pattern is not valid."]],
  ["NO_COMMON_TYPE", ["query", "Values of different types stand where one type is needed."]],
  ["TYPE_MISMATCH", ["query", "A value is not of the type that its place asks for."]],
  ["ILLEGAL_TYPE_OF_ARGUMENT", ["query", "An argument is not of a type that its function takes."]],
  ["NUMBER_OF_ARGUMENTS_DOESNT_MATCH", ["query", "A function has too many arguments, or too few."]],
  ["ZERO_ARRAY_OR_TUPLE_INDEX", ["query", "A position is 0; the first is 1."]],
  ["ARGUMENT_OUT_OF_BOUND", ["query", "An argument is out of its function's range."]],
  ["DECIMAL_OVERFLOW", ["query", "A time is out of range."]],
  ["VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE", ["query", "A number is out of the range of its type."]],
  ["ILLEGAL_AGGREGATION", ["query", "An aggregate function stands where there are no groups."]],
  ["NOT_AN_AGGREGATE", ["query", "A column is neither aggregated nor in GROUP BY."]],
  ["INVALID_WITH_FILL_EXPRESSION", ["query", "WITH FILL has bounds or a step that its column cannot have."]],
  ["INVALID_JOIN_ON_EXPRESSION", ["query", "The condition of a join is not supported."]],
  ["TOO_DEEP_RECURSION", ["query", "The query is nested too deeply."]],
  ["TOO_DEEP_AST", ["query", "The query is nested too deeply."]],
  ["NOT_IMPLEMENTED", SYNTAX],
]);

/**
 * Maps a ClickHouse error to a rejection whose text concerns only the query. `isFault` is true if an operator, and not the caller, must
 * act.
 */
export function toRejection(error: unknown): { readonly refused: QueryRejected; readonly isFault: boolean } {
  if (isUnavailable(error)) {
    const refused = new QueryRejected("unavailable", "The store of usage events cannot be reached.", { cause: error });
    return { refused, isFault: true };
  }
  const known = isOfBytes(error) ? MEMORY : REFUSALS.get(errorType(error) ?? "");
  const [reason, detail] = known ?? SYNTAX;
  return { refused: new QueryRejected(reason, detail, { cause: error }), isFault: known === undefined };
}

/** ClickHouse uses one error code for both result limits. Only the message shows whether there were too many rows or too many bytes. */
const isOfBytes = (error: unknown): boolean =>
  errorType(error) === "TOO_MANY_ROWS_OR_BYTES" && error instanceof Error && /max bytes/.test(error.message);
