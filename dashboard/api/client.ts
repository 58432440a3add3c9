import createFetchClient from "openapi-fetch";
import type { Data, FieldProblem, Input, Procedure } from "../../core/api/procedures.ts";
import { readRetryAfterMs } from "../../core/api/retry.ts";
import type { paths } from "../../core/api/types.ts";
import { activityHeaders } from "./activity.ts";
import { ApiError, UNREACHABLE } from "./api-error.ts";

/** One page of a list, or the complete response of a procedure without pages. */
export interface ApiResponse<T> {
  readonly data: T;
  /** Cursor of the next page; `undefined` on the last page. */
  readonly next: string | undefined;
  readonly requestId: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Additional headers. For example, changing a manifest-managed object requires `Postern-Release`. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Api {
  /** Workspace of the calls; `undefined` selects the person's only workspace. */
  readonly workspace: string | undefined;
  /** Calls a procedure. Throws `ApiError` if the response has no data. */
  call<P extends Procedure>(procedure: P, body: Input<P>, options?: CallOptions): Promise<ApiResponse<Data<P>>>;
}

/** Timeout of an API call, after which the caller may retry. The longest server-side timeout is the 30 s of an SQL query. */
const TIMEOUT_MS = 45_000;

/**
 * Headers of each request. A page of another origin cannot send `Postern-Dashboard`, so the server knows that the dashboard sent the
 * request.
 */
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

/** Creates a client of the v2 API that uses the browser's session. After each call, `report` receives whether the server responded. */
export function createApi({
  workspace,
  report,
}: {
  workspace: string | undefined;
  report: (reached: boolean) => void;
}): Api {
  const client = createFetchClient<paths>({ baseUrl: location.origin, credentials: "same-origin" });
  // openapi-fetch cannot infer the types for a path that is a type parameter. So this type is loose, and `call` has the exact types for its
  // callers.
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
        // The page canceled the request, so the failure says nothing about the connection.
        if (signal?.aborted) throw error;
        report(false);
        throw new ApiError({ status: 0, kind: UNREACHABLE, detail: "The server did not respond.", cause: error });
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

/** Parses an error response. An error response from a proxy in front of the server does not have the API's error body. */
export function refusalOf(response: Response, body: RawResponse["error"]): ApiError {
  return new ApiError({
    status: response.status,
    kind: body?.error?.type?.split("/").at(-1) ?? "unknown",
    detail: body?.error?.detail ?? `The server returned status ${response.status}.`,
    faults: body?.error?.errors,
    requestId: body?.meta?.requestId,
    retryAfterMs: readRetryAfterMs(response.headers.get("retry-after")),
  });
}
