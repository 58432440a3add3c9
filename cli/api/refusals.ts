import type { FieldProblem } from "../../core/api/procedures.ts";
import { printable } from "../fields.ts";
import { NETWORK_REASONS } from "../system-errors.ts";
import type { Answered, NoResponse } from "./exchange.ts";

/* Messages for failed API calls: the problem and the next action. The functions are pure. */

/** Error for a call to which the API responded with an error. */
export class ApiRefusal extends Error {
  override readonly name = "ApiRefusal";
  readonly status: number;
  /** Kind of the error: the last segment of `error.type`, such as `key_not_found`. */
  readonly kind: string;
  /** Problems with the input, each with its location, as the server sent them. */
  readonly faults: readonly FieldProblem[];

  constructor(message: string, of: { status: number; kind: string; faults?: readonly FieldProblem[] }) {
    super(message);
    this.status = of.status;
    this.kind = of.kind;
    this.faults = of.faults ?? [];
  }
}

/** Destination of a call, for error messages. */
export interface Called {
  readonly procedure: string;
  readonly url: string;
  /** Source of the root key, such as `profile shop` or `POSTERN_ROOT_KEY`. */
  readonly rootKeyFrom: string;
  /** Whether the call must not be sent again, because it could take effect twice. */
  readonly isOnce: boolean;
}

interface ErrorBody {
  readonly meta?: { readonly requestId?: unknown };
  readonly error?: { readonly type?: unknown; readonly detail?: unknown; readonly errors?: readonly FieldProblem[] };
}

/** Error kind of the 404 response for an unknown path. */
const NO_SUCH_PATH = "not_found";
/** Error kinds of an unavailable database or Redis. */
const OUTAGES: ReadonlySet<string> = new Set(["service_unavailable", "analytics_connection_failed"]);
const FAULTS_MAX = 5;
const REQUEST_ID_LENGTH_MAX = 100;
const DETAIL_LENGTH_MAX = 1000;

/** Returns the error for a response that is not a success. */
export function refusalOf(answered: Answered, body: unknown, called: Called): ApiRefusal {
  const { status } = answered;
  const {
    type,
    detail: said,
    errors,
  } = (isObject(body) && isObject((body as ErrorBody).error) ? (body as ErrorBody).error : {}) ?? {};
  const kind = typeof type === "string" ? (type.split("/").at(-1) ?? "") : "";
  const refusal = (message: string) => new ApiRefusal(message, { status, kind, faults: problemsOf(errors) });
  if (kind === "") return refusal(notOurs(answered, called));
  const detail = printable(String(said ?? "").slice(0, DETAIL_LENGTH_MAX));
  if (kind === NO_SUCH_PATH) {
    return refusal(`the api-server at ${called.url} does not know ${called.procedure}: it is older than this command`);
  }
  if (status === 401) {
    return refusal(
      `${detail} The command used the root key of ${called.rootKeyFrom} and the server ${called.url}; \`postern rootkey list\` lists the valid root keys`,
    );
  }
  if (status === 403) return refusal(`${detail}${wayToPermission(detail)}`);
  if (status >= 500) return refusal(`${detail} ${wayOutOf(kind, answered, body as ErrorBody, called)}`);
  // Omits a field's message if it repeats the detail, as in the error for a rejected manifest.
  const more = problemsOf(errors).filter(({ message }) => message !== said);
  return refusal([detail, ...problemTexts(more)].join(" "));
}

/** Returns advice: the next action after this kind of error. */
function wayOutOf(kind: string, { status }: Answered, { meta }: ErrorBody, called: Called): string {
  const { url } = called;
  const requestId = printable(String(meta?.requestId ?? "").slice(0, REQUEST_ID_LENGTH_MAX));
  const where = `The api-server at ${url} responded with ${status}${requestId === "" ? "" : ` to ${requestId}`}`;
  const next = OUTAGES.has(kind)
    ? `a backend of the api-server is unavailable; retry later; \`curl '${url}/readyz?verbose'\` shows which one`
    : "see the log of the api-server";
  return `${where}: ${next}${doubtOf(called)}`;
}

/**
 * Returns advice on how to get the permission that `detail` says is missing; an empty string if `detail` names none. A message such as `The
 * root key lacks the permission api.*.read_key or api.api_1.read_key.` names the narrowest tuple last; `<id>` in a tuple stands for any id.
 */
function wayToPermission(detail: string): string {
  const [, tuples] = /lacks the permission (\S+(?: or \S+)*)\.$/.exec(detail) ?? [];
  const narrowest = tuples?.split(" or ").findLast((tuple) => !tuple.includes("<"));
  if (narrowest === undefined) return "";
  return ` An administrator can create a root key with it: \`postern rootkey create --permissions '${narrowest}'\`, plus the other permissions that you need`;
}

const problemsOf = (errors: unknown): FieldProblem[] =>
  (Array.isArray(errors) ? errors : []).map((fault) => ({
    location: String(fault?.location),
    message: String(fault?.message),
  }));

function problemTexts(errors: unknown): string[] {
  if (!Array.isArray(errors)) return [];
  const texts = errors
    .slice(0, FAULTS_MAX)
    .map((fault) => printable(`${String(fault?.location)}: ${String(fault?.message)}`.slice(0, DETAIL_LENGTH_MAX)));
  return errors.length > FAULTS_MAX ? [...texts, `and ${errors.length - FAULTS_MAX} more problems`] : texts;
}

/** Returns the message for a response that does not come from an api-server, such as one from a proxy. */
export function notOurs({ status, contentType, location }: Answered, { url }: Called): string {
  if (status >= 300 && status < 400 && location !== undefined) {
    return `${url} responded with a redirect to ${printable(location.slice(0, DETAIL_LENGTH_MAX))}; use the address of the api-server itself`;
  }
  if (status >= 500)
    return `${url} responded with ${status} without a reason; a proxy in front of the api-server probably cannot reach it`;
  const what = /html/i.test(contentType) ? "a page of HTML" : "a response that is not from the API";
  return `${url} returned ${what}, with status ${status}; the address is not that of an api-server`;
}

const REASONS: Readonly<Record<string, string>> = {
  ...NETWORK_REASONS,
  EPROTO: "it does not speak TLS; is the address an http:// one?",
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
  TOO_LARGE: "the response is larger than the API's maximum",
};
const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "UNABLE_TO_GET_ISSUER_CERT",
]);

const doubtOf = ({ procedure, isOnce }: Called): string =>
  isOnce ? `. ${procedure} may have succeeded; check before you retry` : "";

/** Returns the message for a call that got no response within `waitedMs`. */
export function unreachable({ code, maybeDone }: NoResponse, called: Called, waitedMs: number): string {
  const reason = UNTRUSTED.has(code)
    ? "its certificate authority is not trusted; set --ca-file, or the CA of the profile"
    : code === "TIMEOUT"
      ? `no response within ${Math.round(waitedMs)} ms (--timeout)`
      : code.startsWith("HPE_")
        ? "it does not speak HTTP; is the address an https:// one?"
        : `${REASONS[code] ?? "the call failed"} (${code})`;
  return `no response from ${called.url}: ${reason}${maybeDone ? doubtOf(called) : ""}`;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;
