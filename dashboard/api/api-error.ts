import type { FieldProblem } from "../../core/api/procedures.ts";

/** An API call that returned no data: the API rejected the request, or no response arrived. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status of the response; 0 if there was no response. */
  readonly status: number;
  /** The last segment of `error.type`, such as `key_not_found`; `unreachable` if there was no response. */
  readonly kind: string;
  /** The server's explanation of the error, one sentence. */
  readonly detail: string;
  /** Problems with the input, each with its location; empty unless the server rejected the input. */
  readonly faults: readonly FieldProblem[];
  /** Request id, which identifies the request in the server's logs. */
  readonly requestId: string | undefined;
  /** Time to wait before a retry, as the server requested. */
  readonly retryAfterMs: number | undefined;

  constructor(refusal: {
    readonly status: number;
    readonly kind: string;
    readonly detail: string;
    readonly faults?: readonly FieldProblem[] | undefined;
    readonly requestId?: string | undefined;
    readonly retryAfterMs?: number | undefined;
    readonly cause?: unknown;
  }) {
    super(`${refusal.status} ${refusal.kind}: ${refusal.detail}`, { cause: refusal.cause });
    this.status = refusal.status;
    this.kind = refusal.kind;
    this.detail = refusal.detail;
    this.faults = refusal.faults ?? [];
    this.requestId = refusal.requestId;
    this.retryAfterMs = refusal.retryAfterMs;
  }
}

export const UNREACHABLE = "unreachable";
