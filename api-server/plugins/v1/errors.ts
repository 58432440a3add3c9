import { ERROR_KINDS, type ErrorKind, type PublicError } from "../../../core/errors.ts";
import { MissingPermission, type RequiredPermission } from "../../domain/permissions/required-permissions.ts";

/* Error codes of v1 (api-v1.md section 4). v1 has the same error kinds as v2, mapped to fewer codes. */

/** The v1 codes that are in use, with their meanings and statuses. */
export const V1_CODES = {
  BAD_REQUEST:
    "The request does not match the procedure's schema, or could not be read. The message names the first invalid field.",
  UNAUTHORIZED:
    "401: the request has no valid root key. 403: the root key lacks the permission to decrypt, or to create an object that the call names.",
  FORBIDDEN: "The workspace is disabled.",
  INSUFFICIENT_PERMISSIONS: "The root key lacks a permission. The message names permissions that would suffice.",
  NOT_FOUND: "The object does not exist in the workspace, or the path does not exist.",
  METHOD_NOT_ALLOWED: "The path exists, but not for this method.",
  CONFLICT: "A unique value is already in use, or a manifest, which the message names, manages the object.",
  GONE: "Version 1 of the API is disabled. The message names the procedure that replaces this one.",
  PRECONDITION_FAILED: "A precondition of the request is not met.",
  DELETE_PROTECTED: "The API has delete protection.",
  RATE_LIMITED:
    "The workspace has used up its quota of API requests, or too many of its keys wait to be created. Retry after the time in `Retry-After`.",
  INTERNAL_SERVER_ERROR:
    "An internal error occurred, a database cannot be reached, or the server is busy; in the last case, retry after the time in `Retry-After`. The logs contain the request id.",
} as const satisfies Record<string, string>;

export type V1Code = keyof typeof V1_CODES;

const BY_STATUS: Readonly<Record<number, V1Code>> = {
  400: "BAD_REQUEST",
  401: "UNAUTHORIZED",
  403: "FORBIDDEN",
  404: "NOT_FOUND",
  405: "METHOD_NOT_ALLOWED",
  408: "BAD_REQUEST",
  409: "CONFLICT",
  410: "GONE",
  412: "PRECONDITION_FAILED",
  413: "BAD_REQUEST",
  417: "BAD_REQUEST",
  422: "BAD_REQUEST",
  429: "RATE_LIMITED",
  431: "BAD_REQUEST",
};

interface Failure {
  readonly status: number;
  readonly code: V1Code;
}

/** Error kinds whose v1 status or code differs from that of other kinds with the same v2 status. */
const BY_KIND: Partial<Record<ErrorKind, Failure>> = {
  protected_resource: { status: 412, code: "DELETE_PROTECTED" },
  // v1 does not distinguish deleted namespaces from unknown ones.
  ratelimit_namespace_gone: { status: 404, code: "NOT_FOUND" },
  // v1 responds with 400, because the caller can fix the problem by requesting less data.
  query_execution_timeout: { status: 400, code: "BAD_REQUEST" },
  // v1 has no status for an outage. Its clients retry after a 500.
  analytics_connection_failed: { status: 500, code: "INTERNAL_SERVER_ERROR" },
  server_busy: { status: 500, code: "INTERNAL_SERVER_ERROR" },
};

/** Returns the v1 status and code of an error kind. */
export function v1FailureOf(kind: ErrorKind): Failure {
  const { status } = ERROR_KINDS[kind];
  return BY_KIND[kind] ?? { status, code: BY_STATUS[status] ?? "INTERNAL_SERVER_ERROR" };
}

/** Returns the status and code for a call whose root key lacks a permission. */
export const v1RefusalOf = ({ refusedAs }: RequiredPermission): Failure => ({
  status: refusedAs === "NOT_FOUND" ? 404 : 403,
  code: refusedAs ?? "INSUFFICIENT_PERMISSIONS",
});

const failureOf = (error: PublicError): Failure =>
  error instanceof MissingPermission ? v1RefusalOf(error.needed) : v1FailureOf(error.kind);

export interface V1ErrorBody {
  readonly error: {
    readonly code: V1Code;
    readonly docs: string;
    readonly message: string;
    readonly requestId: string;
  };
}

/** Returns the status and body of an error response of v1. */
export function v1Error(
  error: PublicError,
  { requestId, docsUrl }: { requestId: string; docsUrl: string },
): { status: number; body: V1ErrorBody } {
  const { status, code } = failureOf(error);
  const docs = `${docsUrl}/api-reference/errors/code/${code}`;
  return { status, body: { error: { code, docs, message: messageOf(error), requestId } } };
}

/** Returns `<dotted.path>: <reason>` for the first invalid field. Without one, returns the error's detail. */
function messageOf({ detail, errors }: PublicError): string {
  const [first] = errors ?? [];
  if (first === undefined) return detail;
  const { location, message } = first;
  const path = /^body\.?(.*)$/.exec(location.replaceAll(/\[(\d+)\]/g, ".$1"))?.[1];
  return path === undefined || path === "" ? `${detail.replace(/\.$/, "")}: ${message}` : `${path}: ${message}`;
}
