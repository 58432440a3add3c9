import { ClickHouseError } from "@clickhouse/client";
import { STORE_PROBLEMS, type StoreProblem } from "../contract.ts";

/** The name of ClickHouse's error, such as `TOO_MANY_PARTS`; undefined when it did not answer. */
export const errorType = (error: unknown): string | undefined =>
  error instanceof ClickHouseError ? (error.type ?? error.code) : undefined;

/** `forAll`: every other workspace would meet the same. */
interface Meaning {
  readonly trouble: StoreProblem;
  readonly forAll: boolean;
}

const FOR_ALL = true;
const FOR_ONE = false;

const MEANINGS: ReadonlyMap<string, Meaning> = new Map(
  Object.entries({
    // The server shuts down.
    ABORTED: { trouble: "unavailable", forAll: FOR_ALL },
    AUTHENTICATION_FAILED: { trouble: "access_denied", forAll: FOR_ALL },
    // The profile of the user does not allow a statement, or a setting.
    READONLY: { trouble: "access_denied", forAll: FOR_ALL },
    ACCESS_DENIED: { trouble: "access_denied", forAll: FOR_ALL },
    UNKNOWN_DATABASE: { trouble: "access_denied", forAll: FOR_ALL },
    UNKNOWN_TABLE: { trouble: "access_denied", forAll: FOR_ALL },
    QUOTA_EXCEEDED: { trouble: "access_denied", forAll: FOR_ALL },
    NOT_ENOUGH_SPACE: { trouble: "disk_full", forAll: FOR_ALL },
    TABLE_IS_PERMANENTLY_READ_ONLY: { trouble: "read_only", forAll: FOR_ALL },
    TABLE_IS_READ_ONLY: { trouble: "read_only", forAll: FOR_ALL },
    KEEPER_EXCEPTION: { trouble: "read_only", forAll: FOR_ALL },
    NO_ZOOKEEPER: { trouble: "read_only", forAll: FOR_ALL },
    TOO_MANY_PARTS: { trouble: "overloaded", forAll: FOR_ALL },
    TOO_MANY_SIMULTANEOUS_QUERIES: { trouble: "overloaded", forAll: FOR_ALL },
    SERVER_OVERLOADED: { trouble: "overloaded", forAll: FOR_ALL },
    CANNOT_SCHEDULE_TASK: { trouble: "overloaded", forAll: FOR_ALL },
    // These may be due to the size of one portion.
    MEMORY_LIMIT_EXCEEDED: { trouble: "overloaded", forAll: FOR_ONE },
    CANNOT_ALLOCATE_MEMORY: { trouble: "overloaded", forAll: FOR_ONE },
    TIMEOUT_EXCEEDED: { trouble: "slow", forAll: FOR_ONE },
    SOCKET_TIMEOUT: { trouble: "slow", forAll: FOR_ONE },
    TOO_SLOW: { trouble: "slow", forAll: FOR_ONE },
  } as const satisfies Record<string, Meaning>),
);

/** Returns what a failure of an insert, a statement of the schema or a connection means. */
export function meaningOf(error: unknown): Meaning {
  if (!(error instanceof ClickHouseError))
    return { trouble: isTimeout(error) ? "slow" : "unavailable", forAll: FOR_ALL };
  // Each place that writes to a disk has an error of its own.
  if (/No space left on device/.test(error.message)) return { trouble: "disk_full", forAll: FOR_ALL };
  return MEANINGS.get(errorType(error) ?? "") ?? { trouble: "access_denied", forAll: FOR_ONE };
}

/** Of the client, which has waited for an answer as long as it may. */
const isTimeout = (error: unknown): boolean =>
  error instanceof Error && (/^timeout error/i.test(error.message) || error.name === "TimeoutError");

/** Whether ClickHouse cannot be used at all at the moment. */
export const isUnavailable = (error: unknown): boolean => meaningOf(error).forAll;

/** What is known of a server. */
export interface Seen {
  /** Why it did not answer just now; undefined when it did. */
  readonly noResponse: StoreProblem | undefined;
  /** Of each kind of work, how it last failed, unless it has succeeded since. */
  readonly failures: readonly { readonly trouble: StoreProblem; readonly agoMs: number }[];
  /** For how long the oldest insert has been running, ms; 0 without one. */
  readonly insertingMs: number;
}

/** An insert takes a tenth of a second. */
const SLOW_MS = 10_000;
/** What failed is tried again within half a minute, by this process or by one that is luckier. */
const REMEMBERED_MS = 90_000;

/** Returns the worst of what keeps it from being used. */
export function evaluateProblem({ noResponse, failures, insertingMs }: Seen): StoreProblem | undefined {
  const remembered = failures.filter(({ agoMs }) => agoMs <= REMEMBERED_MS).map(({ trouble: problem }) => problem);
  const holds = new Set([
    ...(noResponse === undefined ? [] : [noResponse]),
    // It answers now, so that being away is over, whatever else failed.
    ...remembered.filter((problem) => problem !== "unavailable"),
    ...(insertingMs > SLOW_MS ? ["slow"] : []),
  ]);
  return STORE_PROBLEMS.find((problem) => holds.has(problem));
}
