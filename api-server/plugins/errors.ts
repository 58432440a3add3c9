import type { FastifyError, FastifyInstance, FastifyRequest } from "fastify";
import { ERROR_KINDS, type ErrorEntry, type ErrorKind, PublicError } from "../../core/errors.ts";
import { CountersUnavailable } from "../../edge/counters/contract.ts";
import { logThrottled } from "../../edge/log-throttle.ts";
import { isDatabaseUnavailable } from "../../postgres/failures.ts";
import type { Deps } from "../deps.ts";
import { readTokenCookie, SESSION_COOKIE } from "../sessions/cookies.ts";
import type { ApiReply, ApiRequest } from "./api-request.ts";
import { readRootKeyHash } from "./auth.ts";
import { answerAhead } from "./read-body.ts";
import { JSON_TYPE } from "./served.ts";
import { ENTRIES_MAX } from "./validation.ts";

/*
 * Converts thrown errors to error bodies. Paths below the prefix of an old API get that API's error bodies; all other paths get those of v2
 * (api-v2.md section 4).
 */

/**
 * HTTP statuses whose error bodies always contain `errors`, even as an empty list. With any other status, a body contains `errors` only if
 * the list has entries.
 */
const WITH_ENTRIES: ReadonlySet<number> = new Set([400, 408, 413]);

interface ErrorBody {
  readonly meta: { readonly requestId: string };
  readonly error: {
    readonly title: string;
    readonly detail: string;
    readonly status: number;
    readonly type: string;
    readonly errors?: readonly ErrorEntry[];
  };
}

export function errorBody(
  error: PublicError,
  { requestId, docsUrl }: { requestId: string; docsUrl: string },
): ErrorBody {
  const { status, title } = ERROR_KINDS[error.kind];
  return {
    meta: { requestId },
    error: {
      title,
      detail: error.detail,
      status,
      type: `${docsUrl}/errors/${error.kind}`,
      ...(WITH_ENTRIES.has(status) || error.errors !== undefined
        ? { errors: (error.errors ?? []).slice(0, ENTRIES_MAX) }
        : {}),
    },
  };
}

/**
 * Media types of problem details (RFC 9457). They are sent to clients that accept them by name, or that accept `application/*`. Clients
 * that accept every type get plain JSON.
 */
const PROBLEM_TYPES = /application\/(?:problem\+json|\*)/i;

const PROBLEM_TYPE = "application/problem+json; charset=utf-8";

const OUTAGES: ReadonlySet<ErrorKind> = new Set(["service_unavailable", "analytics_connection_failed"]);

/** Error format for the paths below a prefix. */
export interface ErrorForm {
  /** Prefix of the paths, such as `/v1/`. */
  readonly prefix: string;
  readonly bodyOf: (
    error: PublicError,
    about: { readonly requestId: string; readonly docsUrl: string },
  ) => { readonly status: number; readonly body: object };
  readonly setHeaders: (request: ApiRequest, reply: ApiReply) => void;
}

/** Called once for each failed request, with the status that was sent. */
export type Observe = (request: ApiRequest, status: number) => void;

export type ErrorSender = (request: ApiRequest, reply: ApiReply, thrown: unknown) => void;

/** Returns a function that sends the response for a thrown error, and logs the details that only operators may see. */
export function createErrorSender(
  deps: Pick<Deps, "throttle" | "docsUrl" | "log">,
  observe: Observe,
  old: ErrorForm | undefined,
): ErrorSender {
  return (request, reply, thrown) => {
    const error = toPublicError(request, thrown);
    const requestId = request.id;
    const about = { requestId, docsUrl: deps.docsUrl };
    const form = old !== undefined && request.url.startsWith(old.prefix) ? old : undefined;
    const { status, body } = form?.bodyOf(error, about) ?? {
      status: ERROR_KINDS[error.kind].status,
      body: errorBody(error, about),
    };
    if (OUTAGES.has(error.kind)) {
      // Throttles the log, because during an outage every request fails here for the same reason.
      const message = `${error.kind} at ${request.routeOptions.url}`;
      logThrottled(deps, { reason: describeFailure(thrown), message });
    } else if (status >= 500) {
      deps.log.error(
        { requestId, url: request.routeOptions.url, kind: error.kind, cause: describeFailure(thrown) },
        "request failed",
      );
    }
    observe(request, status);
    form?.setHeaders(request, reply);
    for (const [name, value] of Object.entries(error.headers)) reply.header(name, value);
    const problem = form === undefined && PROBLEM_TYPES.test(request.headers.accept ?? "");
    const text = JSON.stringify(body);
    reply.status(status).type(problem ? PROBLEM_TYPE : JSON_TYPE);
    if (request.discarded === undefined) reply.send(text);
    else reply.header("content-length", Buffer.byteLength(text)).send(answerAhead(text, request.discarded));
  };
}

/** Error kinds for requests that fastify itself rejects, by fastify's error code. */
const FRAMEWORK_KINDS: Readonly<Record<string, ErrorKind>> = {
  FST_ERR_BAD_URL: "not_found",
  FST_ERR_ASYNC_CONSTRAINT: "not_found",
  FST_ERR_MAX_PARAM_LENGTH: "not_found",
};

const FRAMEWORK_DETAILS: Partial<Record<ErrorKind, string>> = {
  not_found: "This path does not exist.",
};

function toPublicError(request: ApiRequest, thrown: unknown): PublicError {
  if (thrown instanceof PublicError) return thrown;
  // The client disconnected. This is checked first, because a failed client connection has the same error code as a failed database
  // connection.
  if (thrown instanceof Error && thrown === request.raw.errored) {
    return new PublicError("request_body_unreadable", "The body could not be read completely.", { cause: thrown });
  }
  const { code, statusCode } = thrown as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return badContentType(request);
  const kind = code === undefined ? undefined : FRAMEWORK_KINDS[code];
  if (kind !== undefined) return new PublicError(kind, FRAMEWORK_DETAILS[kind] ?? "", { cause: thrown });
  if (isDatabaseUnavailable(thrown)) {
    return new PublicError("service_unavailable", "The database cannot be reached.", { cause: thrown });
  }
  if (thrown instanceof CountersUnavailable) {
    return new PublicError("service_unavailable", "The counters cannot be reached.", { cause: thrown });
  }
  if (statusCode === 400)
    return new PublicError("request_body_unreadable", "The body could not be read.", { cause: thrown });
  return new PublicError("unexpected_error", "An internal error occurred.", { cause: thrown });
}

/**
 * Returns the error for a content type that fastify rejects before the pipeline runs. An invalid or missing root key is reported first, as
 * in the pipeline.
 */
function badContentType(request: ApiRequest): PublicError {
  try {
    const { headers, routeOptions } = request;
    const hasCookie = readTokenCookie(headers.cookie, SESSION_COOKIE) !== undefined;
    const mayBeSession = routeOptions.config.takesSessions === true && headers.authorization === undefined && hasCookie;
    if (!mayBeSession) readRootKeyHash(headers.authorization);
  } catch (error) {
    if (error instanceof PublicError) return error;
    throw error;
  }
  return new PublicError("invalid_input", "The body must be JSON, with the content type application/json.", {
    errors: [{ location: "header.Content-Type", message: "expected application/json, got an unreadable content type" }],
  });
}

/** Returns the chain of causes as text: only names, codes and messages, because other members of a database error contain row values. */
function describeFailure(thrown: unknown): string {
  const deps: string[] = [];
  for (let at: unknown = thrown; at instanceof Error && deps.length < 5; at = at.cause) {
    deps.push(at.stack ?? `${at.name}: ${at.message}`);
  }
  return deps.length === 0 ? typeof thrown : deps.join("\ncaused by ");
}

/** Responds to requests that reach no handler: unknown paths, wrong methods, and fastify's own rejections. */
export function registerRefusals(app: FastifyInstance, sendError: ErrorSender): void {
  const methodsByPath = new Map<string, Set<string>>();
  /** HTTP methods by path pattern, for paths with parameters. */
  const patterns = new Map<RegExp, Set<string>>();
  app.addHook("onRoute", ({ method, url }) => {
    const methods = methodsByPath.get(url) ?? new Set();
    for (const one of [method].flat()) methods.add(one);
    methodsByPath.set(url, methods);
    if (url.includes("/:")) patterns.set(new RegExp(`^${url.replaceAll(/:\w+/g, "[^/]+")}$`), methods);
  });
  const methodsAt = (path: string): Set<string> | undefined =>
    methodsByPath.get(path) ?? [...patterns].find(([pattern]) => pattern.test(path))?.[1];
  const refuse = ({ url }: FastifyRequest): PublicError => {
    const [path = ""] = url.split("?", 1);
    const methods = methodsAt(path);
    if (methods === undefined) return new PublicError("not_found", "This path does not exist.");
    const allowed = [...methods].join(", ");
    return new PublicError("method_not_allowed", `This path supports only ${allowed}.`, {
      headers: { Allow: allowed },
    });
  };
  app.setNotFoundHandler((request, reply) => sendError(request, reply, refuse(request)));
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    // Fastify checks the content type of a QUERY request before it notices that no route has this method.
    const isUnroutable = error.code === "FST_ERR_ROUTE_MISSING_CONTENT_TYPE";
    sendError(request, reply, isUnroutable ? refuse(request) : error);
  });
}
