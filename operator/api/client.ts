import { setTimeout as sleep } from "node:timers/promises";
import createFetchClient from "openapi-fetch";
import type { Data, FieldProblem, Input, Procedure } from "../../core/api/procedures.ts";
import { mayRetry, NO_RESPONSE, readRetryAfterMs } from "../../core/api/retry.ts";
import type { paths } from "../../core/api/types.ts";
import { jitterMs } from "../../core/backoff.ts";

/** Error response that a caller expects and handles, such as 404 or 409. */
export interface Refusal {
  readonly status: number;
  /** Kind of the error: the last segment of `error.type`, such as `role_not_found`. */
  readonly kind: string;
  readonly detail: string;
  /** Invalid fields with their locations, if the input was invalid. */
  readonly faults?: readonly FieldProblem[];
}

export type ApiResponse<T> =
  /** Successful response. `next` is the cursor of the next page of a list; `undefined` on the last page. */
  | { readonly data: T; readonly next?: string | undefined; readonly refusal?: never }
  | { readonly data?: never; readonly refusal: Refusal };

export interface ApiClient {
  /** Calls a procedure. Throws `ApiUnavailable` if the API does not respond or rejects the operator's root key. */
  call<P extends Procedure>(procedure: P, body: Input<P>): Promise<ApiResponse<Data<P>>>;
}

/** Error for an API that cannot be used now: it is unreachable, fails, or rejects the operator's root key. */
export class ApiUnavailable extends Error {
  override readonly name = "ApiUnavailable";
}

/** Error for a rejected root key, which an administrator must replace. */
export class RootKeyRejected extends ApiUnavailable {
  override readonly name = "ApiUnavailable";

  constructor(status: number, detail: string) {
    const why = status === 401 ? "is not valid" : "lacks a permission";
    super(
      `the API rejects the operator's root key, which ${why} (${status}${detail === "" ? "" : `: ${detail}`}). Put a root key with the operator's permissions, for instance one from \`postern provision\`, into the Secret or file; the operator reloads it automatically`,
    );
  }
}

/** Outcome of one attempt of a call. */
export interface ApiAttempt {
  readonly procedure: string;
  readonly result: "success" | "refusal" | "error";
  readonly durationMs: number;
}

export interface ApiOptions {
  readonly observe?: ((attempt: ApiAttempt) => void) | undefined;
  /**
   * Called after each attempt that shows whether the API accepts the root key. `refused` is the rejection; `undefined` if the key is
   * accepted.
   */
  readonly onRootKey?: ((refused: RootKeyRejected | undefined) => void) | undefined;
  readonly url: string;
  /** Returns the current root key, which may be replaced at run time. */
  readonly rootKey: () => string;
  readonly timeoutMs?: number;
  /** Returns the abort signal for a call that starts now, such as the signal of the current leadership term. */
  readonly signal?: () => AbortSignal;
}

/**
 * Statuses of error responses that a caller handles. Some other statuses are retried (core/api/retry.ts). Every call is safe to repeat:
 * reads change nothing, and writes contain the manager and the complete desired state.
 */
const REFUSALS: ReadonlySet<number> = new Set([400, 404, 409, 410, 412, 413]);

/** Error kind of a 404 response for an unknown path. The response for a missing object has another kind. */
const UNKNOWN_PROCEDURE = "not_found";

const ATTEMPTS_MAX = 3;
const RETRY_MS = 150;
/**
 * Maximum `Retry-After` for which a call waits. With a longer one, the call fails, and the object waits in the queue without occupying a
 * worker.
 */
const RETRY_AFTER_MS_MAX = 2_000;
const TIMEOUT_MS = 10_000;

export function createStoreApi({
  url,
  rootKey,
  timeoutMs = TIMEOUT_MS,
  signal,
  observe,
  onRootKey,
}: ApiOptions): ApiClient {
  const deadline = (stop: AbortSignal | undefined) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    return stop === undefined ? timeout : AbortSignal.any([timeout, stop]);
  };
  const client = createFetchClient<paths>({ baseUrl: url.replace(/\/+$/, "") });
  // Restores the exact types for the callers of `call`: openapi-fetch cannot infer the path of a generic procedure.
  const post = client.POST as unknown as (path: string, init: object) => Promise<RawResponse>;

  const send = (procedure: string, body: unknown, stop: AbortSignal | undefined): Promise<RawResponse> =>
    post(`/v2/${procedure}`, {
      body,
      headers: { Authorization: `Bearer ${rootKey()}` },
      signal: deadline(stop),
    });

  return {
    async call<P extends Procedure>(procedure: P, body: Input<P>): Promise<ApiResponse<Data<P>>> {
      const stop = signal?.();
      for (let attempt = 1; ; attempt++) {
        const startedAt = performance.now();
        const outcome = await outcomeOf(procedure, () => send(procedure, body, stop));
        const result = "data" in outcome ? "success" : "refusal" in outcome ? "refusal" : "error";
        observe?.({ procedure, result, durationMs: performance.now() - startedAt });
        if (!("error" in outcome)) onRootKey?.(undefined);
        else if (outcome.error instanceof RootKeyRejected) onRootKey?.(outcome.error);
        if ("data" in outcome) return { data: outcome.data as Data<P>, next: outcome.next };
        if ("refusal" in outcome) return outcome;
        const waitMs = outcome.retryAfterMs ?? jitterMs(RETRY_MS * attempt, 0.5, Math.random);
        const isRetried = mayRetry(outcome.status, { isRepeatable: true });
        if (!isRetried || stop?.aborted || attempt === ATTEMPTS_MAX || waitMs > RETRY_AFTER_MS_MAX) throw outcome.error;
        await sleep(waitMs);
      }
    },
  };
}

interface RawResponse {
  readonly data?: { readonly data: unknown; readonly pagination?: { readonly cursor?: string } };
  readonly error?: {
    readonly error?: { readonly type?: string; readonly detail?: string; readonly errors?: readonly FieldProblem[] };
  };
  readonly response: Response;
}

type Outcome =
  | { readonly data: unknown; readonly next: string | undefined }
  | { readonly refusal: Refusal }
  | { readonly error: ApiUnavailable; readonly status: number; readonly retryAfterMs?: number | undefined };

async function outcomeOf(procedure: string, send: () => Promise<RawResponse>): Promise<Outcome> {
  let answer: RawResponse;
  try {
    answer = await send();
  } catch (error) {
    return { error: new ApiUnavailable("the API is unreachable", { cause: error }), status: NO_RESPONSE };
  }
  const { data, error, response } = answer;
  if (response.ok && data !== undefined) return { data: data.data, next: data.pagination?.cursor };
  const { status } = response;
  const kind = error?.error?.type?.split("/").at(-1) ?? "";
  const detail = error?.error?.detail ?? "";
  if (kind === UNKNOWN_PROCEDURE) {
    // A 404 for an unknown path must not count as a missing object, because a deletion would then leave stored objects behind.
    const message = `the API does not have ${procedure}: it is older than this operator, or is not the Postern API`;
    return { error: new ApiUnavailable(message), status };
  }
  if (status === 401 || status === 403) return { error: new RootKeyRejected(status, detail), status };
  if (REFUSALS.has(status) && kind !== "") {
    const faults = error?.error?.errors;
    return { refusal: { status, kind, detail, ...(faults === undefined ? {} : { faults }) } };
  }
  return {
    error: new ApiUnavailable(`${procedure} returned ${status} ${kind}${status < 500 && detail ? `: ${detail}` : ""}`),
    status,
    retryAfterMs: readRetryAfterMs(response.headers.get("retry-after")),
  };
}
