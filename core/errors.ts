import { retryAfter } from "./api/retry.ts";

/**
 * Every error kind that the public API can return. This table is the only source of status, title and explanation: error bodies, the pages
 * at `/errors/<kind>` and the OpenAPI document are generated from it. A kind is never reused with another meaning.
 */
export interface ErrorKindRow {
  readonly status: number;
  readonly title: string;
  /** Meaning of the error kind and the next action, shown on the page that `error.type` links to. */
  readonly explanation: string;
}

const BAD_REQUEST = "Bad Request";
const NOT_FOUND = "Not Found";
const CONFLICT = "Conflicting Resource";
const INTERNAL = "Internal Server Error";
const UNPROCESSABLE = "Unprocessable Entity";

const row = (status: number, title: string, explanation: string): ErrorKindRow => ({ status, title, explanation });

export const ERROR_KINDS = {
  invalid_input: row(
    400,
    BAD_REQUEST,
    "The request does not match the schema of the procedure, the body is not JSON, or two fields contradict each other. Each entry of `errors` names a location and the expected value.",
  ),
  request_body_unreadable: row(
    400,
    BAD_REQUEST,
    "The request is not valid HTTP, its body is not valid UTF-8, or the connection closed before the body was complete. Send the request again.",
  ),
  permissions_query_syntax_error: row(
    400,
    BAD_REQUEST,
    "The permission query does not parse. The detail contains the position (from 0) and the expected token.",
  ),
  invalid_analytics_query: row(
    400,
    BAD_REQUEST,
    "The query is too long or too complex, does not parse, or uses an unknown column, incompatible types or unsupported SQL. The detail names the part and its position.",
  ),
  invalid_analytics_query_type: row(400, BAD_REQUEST, "The statement is not a SELECT."),
  invalid_analytics_table: row(
    400,
    BAD_REQUEST,
    "The query reads a table or database that this procedure does not offer, or names a common table expression like a table.",
  ),
  invalid_analytics_function: row(400, BAD_REQUEST, "The query calls an unsupported function."),
  query_range_exceeds_retention: row(
    400,
    BAD_REQUEST,
    "The query reads usage that is older than the retention of the workspace. Use a later start time.",
  ),
  unauthorized: row(
    401,
    "Unauthorized",
    "The request has no valid credential. API: send `Authorization: Bearer <root key>` with an enabled, unexpired root key. Gate: send an enabled, unexpired API key.",
  ),
  forbidden: row(
    403,
    "Forbidden",
    "The credential is valid but lacks a required permission, or its workspace is disabled. The detail names the missing permission. A gate checks the API key against the policy.",
  ),
  session_ended: row(
    401,
    "Unauthorized",
    "The dashboard session was signed out, was idle for too long, or reached its maximum lifetime. Sign in again.",
  ),
  sign_in_failed: row(
    401,
    "Unauthorized",
    "A sign-in link works once, within five minutes. A sign-in with a provider must finish in the same browser within ten minutes.",
  ),
  cross_origin_request: row(
    403,
    "Forbidden",
    "The call uses a dashboard session, but does not have the `Postern-Dashboard` header and the origin of the dashboard. Programs use a root key.",
  ),
  no_role: row(
    403,
    "Forbidden",
    "The person is signed in, but has no role in the workspace, or in any workspace. An administrator assigns roles to groups in the file of `--dashboard-roles-file`.",
  ),
  malformed_request: row(
    400,
    BAD_REQUEST,
    "The gate rejected an ambiguous request: its framing, its path, or a repeated credential. The detail names the problem.",
  ),
  not_found: row(404, NOT_FOUND, "The path does not exist. Procedures are at `POST /v2/<service>.<procedure>`."),
  method_not_allowed: row(405, "Method Not Allowed", "The path exists, but not for this method. Procedures use POST."),
  key_not_found: row(
    404,
    NOT_FOUND,
    "The workspace has no live key with this id or secret, or the API of the key was deleted.",
  ),
  api_not_found: row(404, NOT_FOUND, "The workspace has no live API with this id."),
  identity_not_found: row(404, NOT_FOUND, "The workspace has no live identity with this id or external id."),
  permission_not_found: row(404, NOT_FOUND, "The workspace has no permission with this id or slug."),
  role_not_found: row(404, NOT_FOUND, "The workspace has no role with this id or name."),
  policy_not_found: row(404, NOT_FOUND, "The workspace has no live policy with this id or name."),
  ratelimit_namespace_not_found: row(
    404,
    NOT_FOUND,
    "The workspace has no live rate-limit namespace with this id or name.",
  ),
  ratelimit_override_not_found: row(404, NOT_FOUND, "The rate-limit namespace has no override for this identifier."),
  workspace_not_found: row(404, NOT_FOUND, "No workspace has this id."),
  root_key_not_found: row(404, NOT_FOUND, "The workspace has no root key with this id, or the root key was revoked."),
  session_not_found: row(404, NOT_FOUND, "The workspace has no open session with this id."),
  sign_in_link_not_found: row(404, NOT_FOUND, "The workspace has no unused sign-in link with this id."),
  migration_not_found: row(404, NOT_FOUND, "The workspace has no migration with this id."),
  request_timeout: row(
    408,
    "Request Timeout",
    "The request took longer than 60 s, its search took longer than 5 s, or it did not arrive in time.",
  ),
  identity_already_exists: row(409, CONFLICT, "The workspace has a live identity with this external id."),
  ratelimit_name_repeated: row(
    409,
    CONFLICT,
    "Two rate limits of the request have the same name. Only API v1 returns this kind.",
  ),
  permission_already_exists: row(409, CONFLICT, "The workspace has a permission with this slug."),
  key_already_exists: row(
    409,
    CONFLICT,
    "A key with this hash exists, or was deleted and is still stored. Only API v1 returns this kind.",
  ),
  role_already_exists: row(409, CONFLICT, "The workspace has a role with this name."),
  role_changed: row(
    409,
    CONFLICT,
    "The permissions of the role differ from the expected ones. Read the role and send the change again.",
  ),
  ratelimit_namespace_already_exists: row(
    409,
    CONFLICT,
    "The workspace has a live rate-limit namespace with this name.",
  ),
  workspace_already_exists: row(409, CONFLICT, "A workspace has this name."),
  workspace_name_reserved: row(
    409,
    CONFLICT,
    "The workspace `default` cannot be renamed, because every start would create a new one.",
  ),
  last_enabled_workspace: row(
    409,
    CONFLICT,
    "This is the last enabled workspace with a quota above 0: no root key could undo the change. Enable another first, or use the command line.",
  ),
  root_key_changed: row(
    409,
    CONFLICT,
    "The root key changed after the caller read it. Read it and send the change again.",
  ),
  root_key_rotated: row(
    409,
    CONFLICT,
    "The root key was already rotated. Rotate its successor, or revoke the successor first if its secret is lost.",
  ),
  root_key_is_caller: row(
    409,
    CONFLICT,
    "The call would revoke, disable or restrict the root key that sends it. Use another root key or the dashboard.",
  ),
  managed_by_manifest: row(409, CONFLICT, "A manifest manages the object. Edit the manifest that the detail names."),
  managed_exists: row(
    409,
    CONFLICT,
    "The manager already has another object of this kind, or a key with this name. The secret of an existing key cannot be shown again.",
  ),
  unmanaged_exists: row(
    409,
    CONFLICT,
    "An object without a manager has the name of the manifest, and the manifest does not adopt it, may only adopt an equal one, or another manager released it. Set `spec.adopt`, or choose another name.",
  ),
  not_managed: row(
    409,
    CONFLICT,
    "The call may only change what the manifest already manages, and the manifest manages no such object.",
  ),
  reference_not_allowed: row(
    409,
    CONFLICT,
    "The manifest refers to an object of a manifest that does not allow its namespace. Add the namespace to `spec.allowedNamespaces` of the manifest that the detail names.",
  ),
  stale_leader: row(
    409,
    CONFLICT,
    "The fencing number is older than that of an earlier call: another replica of the operator leads.",
  ),
  stale_policy_generation: row(409, CONFLICT, "A newer generation of this policy is stored."),
  ratelimit_namespace_gone: row(
    410,
    "Resource Gone",
    "The rate-limit namespace was deleted. To use its name again, call `ratelimit.createNamespace`.",
  ),
  api_v1_disabled: row(
    410,
    "Resource Gone",
    "API v1 is disabled. The message names the v2 procedure that replaces the called one.",
  ),
  precondition_failed: row(
    412,
    "Precondition Failed",
    "Key encryption is not available, or the key has no rate limit with a requested name.",
  ),
  analytics_not_configured: row(
    412,
    "Precondition Failed",
    "Usage analytics are disabled for the workspace. An administrator can enable them.",
  ),
  protected_resource: row(
    412,
    "Resource is protected",
    "The API has delete protection: disable it first. For a role: keys have the role, and the call deletes only an unused role.",
  ),
  api_has_keys: row(
    412,
    "Resource is protected",
    "The API of the manifest has keys, which its deletion would revoke. Delete the keys first, or release the API: `deletionPolicy: Orphan`.",
  ),
  request_body_too_large: row(413, "Request Entity Too Large", "The body is larger than 10 MiB."),
  query_rows_limit_exceeded: row(
    422,
    UNPROCESSABLE,
    "The result has more rows than the workspace limit. Group or filter, or read a table with a larger time unit.",
  ),
  query_execution_timeout: row(
    422,
    UNPROCESSABLE,
    "The query exceeded the execution time limit of the workspace. Read a shorter time range, or a table with a larger time unit.",
  ),
  query_memory_limit_exceeded: row(
    422,
    UNPROCESSABLE,
    "The query exceeded the memory limit of the workspace, or its response is too large. Read a shorter time range or fewer columns, or use LIMIT.",
  ),
  expectation_failed: row(417, "Expectation Failed", "The `Expect` header has a value other than `100-continue`."),
  request_headers_too_large: row(
    431,
    "Request Header Fields Too Large",
    "The request headers are larger than 16 KiB in total.",
  ),
  workspace_rate_limited: row(
    429,
    "Too Many Requests",
    "The workspace has used its quota of API requests. Wait for the time in `Retry-After`.",
  ),
  query_quota_exceeded: row(
    429,
    "Too Many Requests",
    "The workspace has used its analytics queries, or their execution time, of the current hour. Wait for the time in `Retry-After`.",
  ),
  key_queue_full: row(
    429,
    "Too Many Requests",
    "Too many keys of the workspace wait for creation by `migrations.enqueueKeys` of API v1. Wait for the time in `Retry-After`.",
  ),
  rate_limited: row(
    429,
    "Too Many Requests",
    "A rate limit of the API key, its identity or the policy is exceeded. Wait for the time in `Retry-After`; the `RateLimit-*` headers describe the tightest limit.",
  ),
  sign_in_limited: row(429, "Too Many Requests", "Too many sign-in attempts. Wait for the time in `Retry-After`."),
  gate_credentials_limited: row(
    429,
    "Too Many Requests",
    "A gate requested Redis credentials too often, or its address sent invalid tokens. Gates retry automatically after `Retry-After`.",
  ),
  usage_exceeded: row(
    429,
    "Too Many Requests",
    "The API key has fewer credits than the request costs. Wait for the next refill, or update the credits of the key.",
  ),
  upstream_unreachable: row(
    502,
    "Bad Gateway",
    "The gate admitted the request, but the app is unreachable or closed the connection before its response.",
  ),
  upstream_invalid_response: row(
    502,
    "Bad Gateway",
    "The gate admitted the request, but the response of the app is not valid HTTP/1.1 or cannot be forwarded.",
  ),
  verification_unavailable: row(
    503,
    "Service Unavailable",
    "The gate cannot decide now: its policy is not loaded, or its data about keys, limits or credits is missing or too old. The key may be valid. Try again.",
  ),
  analytics_connection_failed: row(503, "Service Unavailable", "The analytics store is unavailable. Try again."),
  server_busy: row(
    503,
    "Service Unavailable",
    "The server has reached its limit of concurrent usage queries or large bodies. Wait for the time in `Retry-After`, and send fewer requests concurrently.",
  ),
  http_version_not_supported: row(
    505,
    "HTTP Version Not Supported",
    "The HTTP version of the request is not supported. A gate supports HTTP/1.0, HTTP/1.1 and HTTP/2.",
  ),
  upstream_busy: row(
    503,
    "Service Unavailable",
    "The gate admitted the request, but all concurrency slots of the app, or the share of this client address, are in use. Try again.",
  ),
  upstream_timeout: row(504, "Gateway Timeout", "The gate admitted the request, but the app did not respond in time."),
  unexpected_error: row(500, INTERNAL, "Internal error. Search the server log for the request id."),
  service_unavailable: row(500, INTERNAL, "Postgres or Redis is unavailable. Try again."),
} as const satisfies Record<string, ErrorKindRow>;

export type ErrorKind = keyof typeof ERROR_KINDS;

/** One entry of `error.errors`: the location of the invalid value (`body.limit`, `header.Content-Type`) and the expected value. */
export interface ErrorEntry {
  readonly location: string;
  readonly message: string;
  readonly fix?: string;
}

/** A failure that the API reports to the caller. `detail` must never contain a secret, SQL or a stack trace. */
export class PublicError extends Error {
  readonly kind: ErrorKind;
  readonly detail: string;
  readonly errors: readonly ErrorEntry[] | undefined;
  /** Additional response headers, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    kind: ErrorKind,
    detail: string,
    options: {
      errors?: readonly ErrorEntry[];
      headers?: Record<string, string>;
      /** Seconds after which the caller may retry. */
      retryAfterS?: number;
      cause?: unknown;
    } = {},
  ) {
    super(`${kind}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "PublicError";
    this.kind = kind;
    this.detail = detail;
    this.errors = options.errors;
    const { headers = {}, retryAfterS } = options;
    this.headers = retryAfterS === undefined ? headers : { ...headers, "Retry-After": retryAfter(retryAfterS) };
  }
}
