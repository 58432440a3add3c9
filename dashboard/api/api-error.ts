import type { FieldProblem } from "../../core/api/procedures.ts";

/** A call that brought no data: refused by the API, or it never got an answer. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** Of the answer; 0 when there was none. */
  readonly status: number;
  /** The last segment of `error.type`, such as `key_not_found`; `unreachable` when there was no answer. */
  readonly kind: string;
  /** What the server says in a sentence. */
  readonly detail: string;
  /** Of invalid input: each fault with its place. */
  readonly faults: readonly FieldProblem[];
  /** Finds the request in the server's logs. */
  readonly requestId: string | undefined;
  /** How long the server asks to wait before another try. */
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
