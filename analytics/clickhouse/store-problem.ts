import { ClickHouseError } from "@clickhouse/client";
import { STORE_PROBLEMS, type StoreProblem } from "../contract.ts";

/** Returns the ClickHouse error name, such as `TOO_MANY_PARTS`; `undefined` if the error is not a ClickHouse response. */
export const errorType = (error: unknown): string | undefined =>
  error instanceof ClickHouseError ? (error.type ?? error.code) : undefined;

/** Meaning of an error. `forAll` is true if every other workspace would get the error as well. */
interface Meaning {
  readonly problem: StoreProblem;
  readonly forAll: boolean;
}

const FOR_ALL = true;
const FOR_ONE = false;

const MEANINGS: ReadonlyMap<string, Meaning> = new Map(
  Object.entries({
    // The server is shutting down.
    ABORTED: { problem: "unavailable", forAll: FOR_ALL },
    AUTHENTICATION_FAILED: { problem: "access_denied", forAll: FOR_ALL },
    // The user's profile forbids a statement or a setting.
    READONLY: { problem: "access_denied", forAll: FOR_ALL },
    ACCESS_DENIED: { problem: "access_denied", forAll: FOR_ALL },
    UNKNOWN_DATABASE: { problem: "access_denied", forAll: FOR_ALL },
    UNKNOWN_TABLE: { problem: "access_denied", forAll: FOR_ALL },
    QUOTA_EXCEEDED: { problem: "access_denied", forAll: FOR_ALL },
    NOT_ENOUGH_SPACE: { problem: "disk_full", forAll: FOR_ALL },
    TABLE_IS_PERMANENTLY_READ_ONLY: { problem: "read_only", forAll: FOR_ALL },
    TABLE_IS_READ_ONLY: { problem: "read_only", forAll: FOR_ALL },
    KEEPER_EXCEPTION: { problem: "read_only", forAll: FOR_ALL },
    NO_ZOOKEEPER: { problem: "read_only", forAll: FOR_ALL },
    TOO_MANY_PARTS: { problem: "overloaded", forAll: FOR_ALL },
    TOO_MANY_SIMULTANEOUS_QUERIES: { problem: "overloaded", forAll: FOR_ALL },
    SERVER_OVERLOADED: { problem: "overloaded", forAll: FOR_ALL },
    CANNOT_SCHEDULE_TASK: { problem: "overloaded", forAll: FOR_ALL },
    // A single large batch can cause these errors.
    MEMORY_LIMIT_EXCEEDED: { problem: "overloaded", forAll: FOR_ONE },
    CANNOT_ALLOCATE_MEMORY: { problem: "overloaded", forAll: FOR_ONE },
    TIMEOUT_EXCEEDED: { problem: "slow", forAll: FOR_ONE },
    SOCKET_TIMEOUT: { problem: "slow", forAll: FOR_ONE },
    TOO_SLOW: { problem: "slow", forAll: FOR_ONE },
  } as const satisfies Record<string, Meaning>),
);

/** Classifies a failed insert, schema statement or connection. */
export function meaningOf(error: unknown): Meaning {
  if (!(error instanceof ClickHouseError))
    return { problem: isTimeout(error) ? "slow" : "unavailable", forAll: FOR_ALL };
  // A full disk is reported with a different error code by each component that writes to it.
  if (/No space left on device/.test(error.message)) return { problem: "disk_full", forAll: FOR_ALL };
  return MEANINGS.get(errorType(error) ?? "") ?? { problem: "access_denied", forAll: FOR_ONE };
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
  /** Latest failure of each kind of operation. The next success removes it. */
  readonly failures: readonly { readonly problem: StoreProblem; readonly agoMs: number }[];
  /** Duration of the oldest insert in flight in ms; 0 if there is none. */
  readonly insertingMs: number;
}

/** Duration from which an insert counts as slow. A normal insert takes about 100 ms. */
const SLOW_MS = 10_000;
/**
 * Time for which a failure is remembered. It exceeds the retry interval of 30 s, so a persistent failure is observed again before it is
 * forgotten.
 */
const REMEMBERED_MS = 90_000;

/** Returns the most severe current problem. */
export function evaluateProblem({ noResponse, failures, insertingMs }: Seen): StoreProblem | undefined {
  const remembered = failures.filter(({ agoMs }) => agoMs <= REMEMBERED_MS).map(({ problem }) => problem);
  const holds = new Set([
    ...(noResponse === undefined ? [] : [noResponse]),
    // Ignores remembered `unavailable` failures, because the latest probe shows whether the server responds now.
    ...remembered.filter((problem) => problem !== "unavailable"),
    ...(insertingMs > SLOW_MS ? ["slow"] : []),
  ]);
  return STORE_PROBLEMS.find((problem) => holds.has(problem));
}
