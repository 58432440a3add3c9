import createFetchClient from "openapi-fetch";
import type { Data, FieldProblem, Input, Procedure } from "../../core/api/procedures.ts";
import { readRetryAfterMs } from "../../core/api/retry.ts";
import type { paths } from "../../core/api/types.ts";
import { activityHeaders } from "./activity.ts";
import { ApiError, UNREACHABLE } from "./api-error.ts";

/** A page of a list, or the whole answer of a procedure that has no pages. */
export interface ApiResponse<T> {
  readonly data: T;
  /** The cursor of the next page, if there is one. */
  readonly next: string | undefined;
  readonly requestId: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** More headers, such as `Postern-Release` for what a manifest manages. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Api {
  /** The workspace that its calls act in; undefined for the only one of a person. */
  readonly workspace: string | undefined;
  /** Throws `ApiError` when there is no data. */
  call<P extends Procedure>(procedure: P, body: Input<P>, options?: CallOptions): Promise<ApiResponse<Data<P>>>;
}

/** Past this a call has failed, and may be tried again. The longest that the server lets a procedure take is an SQL query of 30 s. */
const TIMEOUT_MS = 45_000;

/** What each request carries: a page of another origin cannot send it, so the server knows that it is this one. */
export const DASHBOARD_HEADERS: Readonly<Record<string, string>> = { "Postern-Dashboard": "1" };

interface RawResponse {
  readonly data?: {
    readonly data: unknown;
    readonly pagination?: { readonly cursor?: string };
    readonly meta?: { readonly requestId?: string };
  };
  readonly error?: {
    readonly error?: { readonly type?: string; readonly detail?: string; readonly errors?: readonly FieldProblem[] };
    readonly meta?: { readonly requestId?: string };
  };
  readonly response: Response;
}

/** The v2 API with the session of this browser. `report` hears of each call whether the server answered at all. */
export function createApi({
  workspace,
  report,
}: {
  workspace: string | undefined;
  report: (reached: boolean) => void;
}): Api {
  const client = createFetchClient<paths>({ baseUrl: location.origin, credentials: "same-origin" });
  // The path of a generic procedure is beyond what openapi-fetch can infer; `call` restores the exact types for its callers.
  const post = client.POST as unknown as (path: string, init: object) => Promise<RawResponse>;
  const workspaceHeader = workspace === undefined ? {} : { "Postern-Workspace": workspace };

  return {
    workspace,
    async call<P extends Procedure>(procedure: P, body: Input<P>, options: CallOptions = {}) {
      const { signal, headers } = options;
      const timeout = AbortSignal.timeout(TIMEOUT_MS);
      let answer: RawResponse;
      try {
        answer = await post(`/v2/${procedure}`, {
          body,
          headers: { ...DASHBOARD_HEADERS, ...activityHeaders(), ...workspaceHeader, ...headers },
          signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
        });
      } catch (error) {
        // The page no longer wants the answer: that says nothing of the connection.
        if (signal?.aborted) throw error;
        report(false);
        throw new ApiError({ status: 0, kind: UNREACHABLE, detail: "The server did not answer.", cause: error });
      }
      report(answer.response.status !== 502 && answer.response.status !== 504);
      const { data, error, response } = answer;
      if (!response.ok || data === undefined) throw refusalOf(response, error);
      return {
        data: data.data as Data<P>,
        next: data.pagination?.cursor,
        requestId: data.meta?.requestId ?? "",
      };
    },
  };
}

/** What a proxy in between answers has no body of ours. */
export function refusalOf(response: Response, body: RawResponse["error"]): ApiError {
  return new ApiError({
    status: response.status,
    kind: body?.error?.type?.split("/").at(-1) ?? "unknown",
    detail: body?.error?.detail ?? `The server answered ${response.status}.`,
    faults: body?.error?.errors,
    requestId: body?.meta?.requestId,
    retryAfterMs: readRetryAfterMs(response.headers.get("retry-after")),
  });
}
