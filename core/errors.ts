/**
 * Every error kind that the public API can return. This table is the only source of status, title and explanation: error bodies, the pages
 * at `/errors/<kind>` and the OpenAPI document are generated from it. A kind is never reused with another meaning.
 */
export interface ErrorKindRow {
  readonly status: number;
  readonly title: string;
  /** Meaning of the kind and the next action, for the reader of the page at `error.type`. */
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
    "The request does not fit the schema of the procedure, or its fields contradict one another. Each entry of `errors` names a place and what was expected there.",
  ),
  request_body_unreadable: row(
    400,
    BAD_REQUEST,
    "The body could not be read: the connection broke, or the text is not valid UTF-8. Send it again.",
  ),
  permissions_query_syntax_error: row(
    400,
    BAD_REQUEST,
    "The permission query does not parse. The detail names the position (counted from 0) and what was expected there.",
  ),
  invalid_analytics_query: row(
    400,
    BAD_REQUEST,
    "The query is too long or too complex, does not parse, or cannot be answered as it is written: an unknown column, types that do not go together, something that the dialect does not have. The detail names the part and its place.",
  ),
  invalid_analytics_query_type: row(400, BAD_REQUEST, "The statement is not a SELECT. Nothing else can be run."),
  invalid_analytics_table: row(
    400,
    BAD_REQUEST,
    "The query names a table that this procedure does not offer, a database, or a common table expression with the name of a table.",
  ),
  invalid_analytics_function: row(400, BAD_REQUEST, "The query calls a function that is not offered."),
  query_range_exceeds_retention: row(
    400,
    BAD_REQUEST,
    "The query asks for usage from before the retention of the workspace. Begin later.",
  ),
  unauthorized: row(
    401,
    "Unauthorized",
    "The request carries no valid root key. Send `Authorization: Bearer <root key>` with a key that exists, is enabled and has not expired. At a gate in front of an app it is the API key that is missing, unknown, disabled or expired.",
  ),
  forbidden: row(
    403,
    "Forbidden",
    "The root key is valid but lacks a permission that the procedure needs, or its workspace is disabled. The detail names what is missing. At a gate in front of an app the same holds for the API key and what the policy asks of it.",
  ),
  session_ended: row(
    401,
    "Unauthorized",
    "The session of the dashboard has ended: it was signed out, was not used for a while, or was too old. Sign in again.",
  ),
  sign_in_failed: row(
    401,
    "Unauthorized",
    "The sign-in failed. A link works once and for five minutes: make another with `postern dashboard link`. A sign-in with the provider has to end in the browser that began it, within ten minutes.",
  ),
  cross_origin_request: row(
    403,
    "Forbidden",
    "A request with a session was not sent by the dashboard itself. Browsers send cookies along for pages of other sites, too; so a header and the origin are asked for. Programs use a root key.",
  ),
  no_role: row(
    403,
    "Forbidden",
    "The person is signed in, and has no role in the workspace, or in any. Who runs the installation gives roles to groups in the file of `--dashboard-roles-file`.",
  ),
  malformed_request: row(
    400,
    BAD_REQUEST,
    "A gate in front of an app refused the request because it could be read in more than one way: its framing, its path or a credential that came twice. The detail names what is wrong.",
  ),
  not_found: row(404, NOT_FOUND, "There is nothing at this path. Procedures are at `POST /v2/<service>.<procedure>`."),
  method_not_allowed: row(405, "Method Not Allowed", "The path exists, but not for this method. Procedures take POST."),
  key_not_found: row(404, NOT_FOUND, "There is no live key with this id or secret in the workspace."),
  api_not_found: row(404, NOT_FOUND, "There is no live API with this id in the workspace."),
  identity_not_found: row(404, NOT_FOUND, "There is no live identity with this id or external id in the workspace."),
  permission_not_found: row(404, NOT_FOUND, "There is no permission with this id or slug in the workspace."),
  role_not_found: row(404, NOT_FOUND, "There is no role with this id or name in the workspace."),
  policy_not_found: row(404, NOT_FOUND, "There is no policy with this id or name in the workspace."),
  ratelimit_namespace_not_found: row(
    404,
    NOT_FOUND,
    "There is no live rate-limit namespace with this id or name in the workspace.",
  ),
  ratelimit_override_not_found: row(404, NOT_FOUND, "The namespace has no override for this identifier."),
  workspace_not_found: row(404, NOT_FOUND, "There is no workspace with this id."),
  root_key_not_found: row(404, NOT_FOUND, "There is no root key with this id in the workspace, or it was revoked."),
  migration_not_found: row(404, NOT_FOUND, "There is no migration with this id in the workspace."),
  request_timeout: row(
    408,
    "Request Timeout",
    "The request took longer than 60 seconds, or its search longer than 5, and was cancelled.",
  ),
  identity_already_exists: row(409, CONFLICT, "A live identity of the workspace has this external id already."),
  ratelimit_name_repeated: row(409, CONFLICT, "Two limits of the request have one name. Names of limits are distinct."),
  permission_already_exists: row(409, CONFLICT, "A permission of the workspace has this slug already."),
  key_already_exists: row(409, CONFLICT, "A key with this hash exists already, or was deleted and not removed."),
  role_already_exists: row(409, CONFLICT, "A role of the workspace has this name already."),
  role_changed: row(
    409,
    CONFLICT,
    "The role grants other permissions than the caller expected: somebody changed it since the caller read it. Read it again, and decide then.",
  ),
  ratelimit_namespace_already_exists: row(409, CONFLICT, "A live rate-limit namespace has this name already."),
  workspace_already_exists: row(409, CONFLICT, "A workspace has this name already."),
  workspace_name_reserved: row(
    409,
    CONFLICT,
    "The workspace `default` keeps its name: each start looks for it, and would make a new one.",
  ),
  last_enabled_workspace: row(
    409,
    CONFLICT,
    "No other workspace is enabled and has a quota above 0, so after the change nobody could call the API to undo it. Enable another workspace first, or use the command line.",
  ),
  root_key_changed: row(
    409,
    CONFLICT,
    "The root key was changed after it was read. Read it again, look at what changed, and repeat the change if it is still right.",
  ),
  root_key_rotated: row(
    409,
    CONFLICT,
    "The root key has a successor already. Rotate the successor, or revoke it first if its secret was lost.",
  ),
  root_key_is_caller: row(
    409,
    CONFLICT,
    "The call would revoke, disable or narrow the root key that sends it, or end it sooner. Use another root key, the dashboard or the command line.",
  ),
  managed_by_manifest: row(
    409,
    CONFLICT,
    "The object is managed by a manifest. Edit the manifest that the detail names; a direct change would be undone.",
  ),
  managed_exists: row(
    409,
    CONFLICT,
    "The manager has such an object already: another object of this kind, or a key of this name, whose secret cannot be shown again.",
  ),
  stale_policy_generation: row(409, CONFLICT, "A newer generation of this policy is stored already."),
  ratelimit_namespace_gone: row(
    410,
    "Resource Gone",
    "The rate-limit namespace was deleted. To use the name again, call `ratelimit.createNamespace`.",
  ),
  api_v1_disabled: row(
    410,
    "Resource Gone",
    "The first generation of the API is switched off. The message names the procedure of v2 that takes its place.",
  ),
  precondition_failed: row(
    412,
    "Precondition Failed",
    "Something that the request relies on is missing: key encryption is not available, or a named rate limit is not attached to the key.",
  ),
  analytics_not_configured: row(
    412,
    "Precondition Failed",
    "Usage analytics are switched off for the workspace. An administrator can switch them on.",
  ),
  protected_resource: row(
    412,
    "Resource is protected",
    "Delete protection is on for this API: switch it off first. Or keys have the role that was to be deleted unless keys have it.",
  ),
  request_body_too_large: row(413, "Request Entity Too Large", "The body is larger than 10 MiB."),
  query_rows_limit_exceeded: row(
    422,
    UNPROCESSABLE,
    "The query makes more rows than the workspace may have read. Group or filter, or read a table of a coarser unit.",
  ),
  query_execution_timeout: row(
    422,
    UNPROCESSABLE,
    "The query ran for longer than the workspace allows. Read less time, or a table of a coarser unit.",
  ),
  query_memory_limit_exceeded: row(
    422,
    UNPROCESSABLE,
    "The query needs more memory than the workspace allows, or its answer is too large. Read less time or fewer columns, or use LIMIT.",
  ),
  expectation_failed: row(
    417,
    "Expectation Failed",
    "The header `Expect` asks for something other than `100-continue`. Leave it out.",
  ),
  request_headers_too_large: row(
    431,
    "Request Header Fields Too Large",
    "The headers of the request are larger than 16 KiB together. Send fewer or shorter ones.",
  ),
  workspace_rate_limited: row(
    429,
    "Too Many Requests",
    "The workspace has used up its quota of API requests. Wait for as long as `Retry-After` says.",
  ),
  query_quota_exceeded: row(
    429,
    "Too Many Requests",
    "The workspace has used up the analytics queries of the hour, or the time that they may run. Wait for as long as `Retry-After` says.",
  ),
  key_queue_full: row(
    429,
    "Too Many Requests",
    "Too many keys of the workspace wait to be created by `migrations.enqueueKeys` of v1. None of the call was accepted. Wait for as long as `Retry-After` says.",
  ),
  rate_limited: row(
    429,
    "Too Many Requests",
    "A rate limit of the API key, of its identity or of the policy is used up. Wait for as long as `Retry-After` says; the `RateLimit-*` headers show the tightest limit.",
  ),
  sign_in_limited: row(
    429,
    "Too Many Requests",
    "There were too many tries to sign in, from this address or in all. Wait for as long as `Retry-After` says.",
  ),
  gate_credentials_limited: row(
    429,
    "Too Many Requests",
    "A gate, or another caller from its address, asked for users of Redis too often, or with tokens that are not valid. Gates ask again by themselves after `Retry-After`.",
  ),
  usage_exceeded: row(
    429,
    "Too Many Requests",
    "The API key has fewer credits left than the request costs. They come back with the next refill, or when they are set anew.",
  ),
  upstream_unreachable: row(
    502,
    "Bad Gateway",
    "The gate let the request through, but the app behind it could not be reached or broke off before it answered.",
  ),
  upstream_invalid_response: row(
    502,
    "Bad Gateway",
    "The gate let the request through, but the app behind it answered in a way that is not HTTP/1.1 or cannot be passed on.",
  ),
  verification_unavailable: row(
    503,
    "Service Unavailable",
    "The gate in front of the app cannot decide about the request now: its policy is not loaded yet, or what it knows of keys, limits or credits is missing or too old. Nothing is said about the key. Try again.",
  ),
  analytics_connection_failed: row(
    503,
    "Service Unavailable",
    "The store of usage analytics is not reachable. Keys are verified all the same. Try again.",
  ),
  server_busy: row(
    503,
    "Service Unavailable",
    "The server runs as many usage queries, or reads as many large bodies, as it can at once, and none ended while the request waited. Try again after the time that `Retry-After` says; send fewer at once.",
  ),
  http_version_not_supported: row(
    505,
    "HTTP Version Not Supported",
    "The request line names a version of HTTP other than 1.1 and 1.0. A gate in front of an app speaks no other.",
  ),
  upstream_busy: row(
    503,
    "Service Unavailable",
    "The gate let the request through, but all places at the app behind it are taken, or the client's address holds its share of them. The app was not asked. Try again.",
  ),
  upstream_timeout: row(
    504,
    "Gateway Timeout",
    "The gate let the request through, but the app behind it did not answer in time.",
  ),
  unexpected_error: row(
    500,
    INTERNAL,
    "Something failed that should not. Search the logs of the server for the request id.",
  ),
  service_unavailable: row(500, INTERNAL, "A store that the request needs is not reachable. Try again."),
} as const satisfies Record<string, ErrorKindRow>;

export type ErrorKind = keyof typeof ERROR_KINDS;

/** One entry of `error.errors`: the location of the invalid value (`body.limit`, `header.Content-Type`) and the expected value. */
export interface ErrorEntry {
  readonly location: string;
  readonly message: string;
  readonly fix?: string;
}

/** A failure that is reported to the caller. `detail` must never contain a secret, SQL or a stack trace. */
export class PublicError extends Error {
  readonly kind: ErrorKind;
  readonly detail: string;
  readonly errors: readonly ErrorEntry[] | undefined;
  /** Additional response headers, such as `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    kind: ErrorKind,
    detail: string,
    options: { errors?: readonly ErrorEntry[]; headers?: Record<string, string>; cause?: unknown } = {},
  ) {
    super(`${kind}: ${detail}`, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "PublicError";
    this.kind = kind;
    this.detail = detail;
    this.errors = options.errors;
    this.headers = options.headers ?? {};
  }
}
