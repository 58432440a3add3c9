import { mayRetry } from "../../core/api/retry.ts";
import { ApiError } from "./api-error.ts";

/*
 * Makes one call per item, a few at a time. If the server rejects a call because of its item, the item is listed as failed, and the other
 * calls go on. An error that would affect every other call too (no connection, no session, invalid input) ends the batch, which can be
 * resumed. Each call must have the same effect if it is sent twice, because it is sent again if its response is lost.
 */

export interface BatchState<T> {
  readonly done: number;
  /** Items that failed, each with the reason. */
  readonly failed: readonly { readonly item: T; readonly problem: string }[];
  /** Items without a result yet, in their order. */
  readonly left: readonly T[];
  /** Time until which the batch waits for the server, Unix ms; `undefined` while it runs. */
  readonly waitsUntilMs: number | undefined;
}

export interface BatchOptions<T> {
  readonly act: (item: T) => Promise<unknown>;
  /** Called with the state after each item and at each wait. */
  readonly report: (state: BatchState<T>) => void;
  /** Ends the batch once the calls that were already sent have finished, so that the result of each of their items is known. */
  readonly signal: AbortSignal;
  readonly clock?: { readonly nowMs: () => number; readonly sleep: (ms: number, signal: AbortSignal) => Promise<void> };
}

const CONCURRENCY = 4;
const TRIES_MAX = 4;
const RETRY_MS = 1000;
/**
 * Longest wait after which the batch continues by itself. Before a longer wait, such as until a quota resets, the batch ends, and the
 * person decides when to resume it.
 */
const WAIT_MS_MAX = 60_000;

export const startOf = <T>(items: readonly T[]): BatchState<T> => ({
  done: 0,
  failed: [],
  left: items,
  waitsUntilMs: undefined,
});

/**
 * Runs the calls for the remaining items. Throws the error that ended the batch early; the last reported state shows which items remain.
 */
export async function runBatch<T>(state: BatchState<T>, options: BatchOptions<T>): Promise<void> {
  const { act, report, signal, clock = CLOCK } = options;
  const queue = [...state.left];
  const settled = new Set<T>();
  const failed = [...state.failed];
  let { done } = state;
  let waitsUntilMs: number | undefined;
  let ended: { readonly error: unknown } | undefined;
  const tell = (): void =>
    report({ done, failed: [...failed], left: state.left.filter((item) => !settled.has(item)), waitsUntilMs });
  const isOver = (): boolean => signal.aborted || ended !== undefined;

  /** Delays all calls, because the server would reject any of them. */
  const waitForTurn = async (): Promise<void> => {
    while (waitsUntilMs !== undefined && !isOver()) {
      const restMs = waitsUntilMs - clock.nowMs();
      if (restMs > 0) await clock.sleep(restMs, signal);
      else {
        waitsUntilMs = undefined;
        tell();
      }
    }
  };
  const settle = async (item: T): Promise<void> => {
    for (let tries = 1; ; tries += 1) {
      await waitForTurn();
      if (isOver()) return;
      try {
        await act(item);
        done += 1;
        break;
      } catch (error) {
        const waitMs = tries < TRIES_MAX ? waitAfter(error, tries) : undefined;
        if (waitMs !== undefined) {
          waitsUntilMs = Math.max(waitsUntilMs ?? 0, clock.nowMs() + waitMs);
          tell();
        } else if (isOfItem(error)) {
          failed.push({ item, problem: problemOf(error) });
          break;
        } else {
          ended ??= { error };
          return;
        }
      }
    }
    settled.add(item);
    tell();
  };
  const work = async (): Promise<void> => {
    for (let item = queue.shift(); item !== undefined && !isOver(); item = queue.shift()) await settle(item);
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, work));
  waitsUntilMs = undefined;
  tell();
  if (ended !== undefined) throw ended.error;
}

/** Returns how long to wait before the call is sent again; `undefined` if it is not sent again. */
function waitAfter(error: unknown, tries: number): number | undefined {
  if (!(error instanceof ApiError) || !mayRetry(error.status, { isRepeatable: true })) return undefined;
  const waitMs = error.retryAfterMs ?? RETRY_MS * 2 ** (tries - 1);
  return waitMs > WAIT_MS_MAX ? undefined : waitMs;
}

/** Returns whether the error concerns only this item: a missing, changed or protected object, or an internal error. */
const isOfItem = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.kind !== "role_not_found" && [403, 404, 409, 412, 500].includes(error.status);

const problemOf = ({ detail, faults }: ApiError): string =>
  faults.length === 0 ? detail : faults.map(({ message }) => message).join(" ");

const CLOCK = {
  nowMs: Date.now,
  sleep: (ms: number, signal: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(finish, ms);
      function finish(): void {
        clearTimeout(timer);
        signal.removeEventListener("abort", finish);
        resolve();
      }
      signal.addEventListener("abort", finish);
    }),
};
