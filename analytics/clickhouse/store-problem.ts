import { ClickHouseError } from "@clickhouse/client";
import { STORE_PROBLEMS, type StoreProblem } from "../contract.ts";

/** Returns the ClickHouse error name, such as `TOO_MANY_PARTS`; `undefined` if the error is not a ClickHouse response. */
export const errorType = (error: unknown): string | undefined =>
  error instanceof ClickHouseError ? (error.type ?? error.code) : undefined;

/** Meaning of an error. `forAll` is true if every other workspace would get the error as well. */
interface Meaning {
  readonly trouble: StoreProblem;
  readonly forAll: boolean;
}

const FOR_ALL = true;
const FOR_ONE = false;

const MEANINGS: ReadonlyMap<string, Meaning> = new Map(
  Object.entries({
    // The server is shutting down.
    ABORTED: { trouble: "unavailable", forAll: FOR_ALL },
    AUTHENTICATION_FAILED: { trouble: "access_denied", forAll: FOR_ALL },
    // The user's profile forbids a statement or a setting.
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
    // A single large batch can cause these errors.
    MEMORY_LIMIT_EXCEEDED: { trouble: "overloaded", forAll: FOR_ONE },
    CANNOT_ALLOCATE_MEMORY: { trouble: "overloaded", forAll: FOR_ONE },
    TIMEOUT_EXCEEDED: { trouble: "slow", forAll: FOR_ONE },
    SOCKET_TIMEOUT: { trouble: "slow", forAll: FOR_ONE },
    TOO_SLOW: { trouble: "slow", forAll: FOR_ONE },
  } as const satisfies Record<string, Meaning>),
);

/** Classifies a failed insert, schema statement or connection. */
export function meaningOf(error: unknown): Meaning {
  if (!(error instanceof ClickHouseError))
    return { trouble: isTimeout(error) ? "slow" : "unavailable", forAll: FOR_ALL };
  // A full disk is reported with a different error code by each component that writes to it.
  if (/No space left on device/.test(error.message)) return { trouble: "disk_full", forAll: FOR_ALL };
  return MEANINGS.get(errorType(error) ?? "") ?? { trouble: "access_denied", forAll: FOR_ONE };
}

/** Returns whether the client's request timeout expired. */
const isTimeout = (error: unknown): boolean =>
  error instanceof Error && (/^timeout error/i.test(error.message) || error.name === "TimeoutError");

/** Returns whether ClickHouse currently fails for all workspaces. */
export const isUnavailable = (error: unknown): boolean => meaningOf(error).forAll;

/** Observed state of a ClickHouse server. */
export interface Seen {
  /** Reason why the latest probe failed; `undefined` if the probe succeeded. */
  readonly noResponse: StoreProblem | undefined;
  /** Latest failure per kind of operation, removed by the next success. */
  readonly failures: readonly { readonly trouble: StoreProblem; readonly agoMs: number }[];
  /** Duration of the oldest insert in flight in ms; 0 if there is none. */
  readonly insertingMs: number;
}

/** Duration from which an insert counts as slow. A normal insert takes about 100 ms. */
const SLOW_MS = 10_000;
/**
 * Time for which a failure is remembered. It exceeds the retry interval of 30 s, so that a persistent failure is observed again before
 * it is forgotten.
 */
const REMEMBERED_MS = 90_000;

/** Returns the most severe current problem. */
export function evaluateProblem({ noResponse, failures, insertingMs }: Seen): StoreProblem | undefined {
  const remembered = failures.filter(({ agoMs }) => agoMs <= REMEMBERED_MS).map(({ trouble: problem }) => problem);
  const holds = new Set([
    ...(noResponse === undefined ? [] : [noResponse]),
    // Ignores earlier `unavailable` failures, because the server responds again.
    ...remembered.filter((problem) => problem !== "unavailable"),
    ...(insertingMs > SLOW_MS ? ["slow"] : []),
  ]);
  return STORE_PROBLEMS.find((problem) => holds.has(problem));
}
