import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { HOP_BY_HOP } from "../../core/policies/hop-by-hop.ts";
import { pushLimitHeaders } from "../../core/ratelimits/limit-headers.ts";
import type { Decided, Passed, Refused } from "../decision/decide.ts";
import type { ReceivedRequest } from "../decision/evaluate-head.ts";
import { problemResponse } from "../http/responses.ts";
import {
  HeaderValueOption_HeaderAppendAction as AppendAction,
  type HeaderValueOptionSchema,
} from "./generated/envoy/config/core/v3/base_pb.js";
import type { AttributeContext_HttpRequest } from "./generated/envoy/service/auth/v3/attribute_context_pb.js";
import {
  type CheckRequest,
  type CheckResponse,
  CheckResponseSchema,
} from "./generated/envoy/service/auth/v3/external_auth_pb.js";
import type { StatusCode } from "./generated/envoy/type/v3/http_status_pb.js";
import { removedHeaders } from "./removed-headers.ts";

/*
 * Envoy's ext_authz over gRPC: `envoy.service.auth.v3.Authorization/Check`. Envoy sends the request as it will route it. The response
 * contains the headers to set and remove for the app, and the checked path, so that the app serves only this path.
 */

export interface CheckDeps {
  /** Decides a request. `startedMs` is a value of `performance.now()`. */
  readonly decide: (request: ReceivedRequest, startedMs: number) => Decided | Promise<Decided>;
  /** Base URL of error types. */
  readonly docsUrl: string;
}

/** Decides the request that the attributes describe. Throws `ConnectError` if they do not describe an HTTP request. */
export async function check(deps: CheckDeps, { attributes }: CheckRequest): Promise<CheckResponse> {
  const startedMs = performance.now();
  const http = attributes?.request?.http;
  if (http === undefined) throw new ConnectError("only HTTP requests can be checked", Code.InvalidArgument);
  const source = attributes?.source?.address?.address;
  const address = source?.case === "socketAddress" ? source.value.address : "";
  const request = requestOf(http, address);
  const decided = await deps.decide(request, startedMs);
  return decided.kind === "pass" ? admit(decided, request) : refuse(deps, decided, http);
}

/** Framing headers, which describe Envoy's own connection instead of the evaluated request. */
const FRAMING: ReadonlySet<string> = new Set([...HOP_BY_HOP, "content-length", "expect", "host"]);

function requestOf(http: AttributeContext_HttpRequest, remoteAddress: string): ReceivedRequest {
  const rawHeaders = ["Host", http.host];
  const add = (name: string, value: string): void => {
    if (!name.startsWith(":") && !FRAMING.has(name.toLowerCase())) rawHeaders.push(name, value);
  };
  for (const [name, value] of Object.entries(http.headers)) add(name, byteString(value));
  // If `encode_raw_headers` is set, Envoy sends all headers as received, including duplicates.
  for (const { key, value, rawValue } of http.headerMap?.headers ?? []) {
    add(key, rawValue.length > 0 ? Buffer.from(rawValue).toString("latin1") : byteString(value));
  }
  const { method } = http;
  return { method, url: byteString(http.path), httpVersion: "1.1", rawHeaders, socket: { remoteAddress } };
}

/** Converts text to the form that an HTTP parser returns: one character per byte. */
const byteString = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

type Option = MessageInitShape<typeof HeaderValueOptionSchema>;

function options(headers: readonly string[]): Option[] {
  const made: Option[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const [key, value] = [headers[i] as string, headers[i + 1] as string];
    made.push({ header: { key, value }, appendAction: AppendAction.OVERWRITE_IF_EXISTS_OR_ADD });
  }
  return made;
}

function admit({ requestId, shown, admitted, identity }: Passed, request: ReceivedRequest): CheckResponse {
  const added = [...identity, "X-Postern-Request-Id", requestId];
  const headersToRemove = removedHeaders(request.rawHeaders, admitted.head, added);
  // Replaces the path by the checked target, which has no key in its query.
  if (admitted.target !== request.url) added.push(":path", admitted.target);
  const limits: string[] = [];
  if (shown !== undefined) pushLimitHeaders(limits, shown);
  return create(CheckResponseSchema, {
    status: { code: 0 },
    httpResponse: {
      case: "okResponse",
      value: { headers: options(added), headersToRemove, responseHeadersToAdd: options(limits) },
    },
  });
}

const GRPC_CODES: Readonly<Record<number, Code>> = {
  400: Code.InvalidArgument,
  401: Code.Unauthenticated,
  403: Code.PermissionDenied,
  429: Code.ResourceExhausted,
  503: Code.Unavailable,
};

function refuse(
  { docsUrl }: CheckDeps,
  { requestId, shown, refusal }: Refused,
  http: AttributeContext_HttpRequest,
): CheckResponse {
  const { problem } = refusal;
  const { status, headers, body } = problemResponse(problem, { requestId, docsUrl, accept: http.headers.accept });
  if (shown !== undefined) pushLimitHeaders(headers, shown);
  const sent = options(headers).filter(({ header }) => header?.key !== "Content-Length");
  return create(CheckResponseSchema, {
    status: { code: GRPC_CODES[status] ?? Code.Internal, message: problem.detail },
    httpResponse: { case: "deniedResponse", value: { status: { code: status as StatusCode }, headers: sent, body } },
  });
}
