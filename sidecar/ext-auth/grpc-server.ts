import {
  createSecureServer,
  createServer,
  type Http2SecureServer,
  type Http2Server,
  type Http2ServerRequest,
  type Http2ServerResponse,
} from "node:http2";
import type { TlsOptions } from "node:tls";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { boundConnections, type ExtAuthConnectionLimits, type ExtAuthServer } from "./connections.ts";
import { type CheckDeps, check } from "./envoy-check.ts";
import { type RateLimiting, shouldRateLimit } from "./envoy-rate-limit.ts";
import { Authorization } from "./generated/envoy/service/auth/v3/external_auth_pb.js";
import { RateLimitService } from "./generated/envoy/service/ratelimit/v3/rls_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "./generated/grpc/health/v1/health_pb.js";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
  ServerReflection as V1,
} from "./generated/grpc/reflection/v1/reflection_pb.js";
import {
  ServerReflection as V1Alpha,
  ServerReflectionRequestSchema as V1AlphaRequest,
  ServerReflectionResponseSchema as V1AlphaResponse,
} from "./generated/grpc/reflection/v1alpha/reflection_pb.js";
import { CALL_MS_MAX, type CallKind, type GrpcCallLimits, GrpcCalls } from "./grpc-calls.ts";
import { Reflection } from "./reflection.ts";
import type { Trust } from "./trusted.ts";

/*
 * The gRPC ext-auth endpoint over HTTP/2: Envoy's ext_authz and rate limit service, health and reflection. This file and its imports are
 * loaded when the endpoint opens, so a gate without the endpoint uses no memory for them. In a bundled build, this file becomes a bundle of
 * its own, with separate copies of its imports. Its caller therefore passes in the decision functions.
 */

export interface GrpcExtAuthDeps {
  readonly checking: CheckDeps;
  readonly rateLimit: RateLimiting;
  readonly trust: Trust;
  readonly onRejected: (why: "untrusted" | "overloaded", detail: { readonly address: string | undefined }) => void;
  readonly isReady: () => boolean;
  /** Counts and logs an unexpected error. Must never throw. */
  readonly onInternalError: (error: unknown) => void;
}

const HEALTH_CHECK = `/${Health.typeName}/Check`;
const OFFERED = [Authorization, RateLimitService, Health, V1, V1Alpha];
/** Maximum delay until a health watch reports a change of the state. */
const POLL_MS = 250;
/**
 * Maximum size of a message. It is several times the maximum size of a head, because Envoy sends each header in two forms. This size times
 * the maximum number of calls bounds the memory of the endpoint.
 */
const MESSAGE_BYTES_MAX = 128 * 1024;
/** Maximum number of concurrent calls per connection. Envoy opens more connections if necessary. */
const STREAMS_MAX = 256;
/** Maximum size of a call's metadata, which the endpoint ignores. */
const METADATA_BYTES_MAX = 16 * 1024;
/** Maximum number of requests in one reflection call. */
const REFLECTED_MAX = 200;

const KINDS: ReadonlyMap<string, CallKind> = new Map([
  [`/${Health.typeName}/Watch`, "watch"],
  [`/${V1.typeName}/ServerReflectionInfo`, "limited"],
  [`/${V1Alpha.typeName}/ServerReflectionInfo`, "limited"],
]);

/**
 * Creates the endpoint. `tls` are options of `tls.createServer`; if `undefined`, the endpoint does not use TLS. Throws if the certificate
 * is invalid.
 */
export function createGrpcExtAuth(
  deps: GrpcExtAuthDeps,
  limits: ExtAuthConnectionLimits & GrpcCallLimits,
  tls?: TlsOptions,
): ExtAuthServer {
  const { trust, onRejected } = deps;
  const handler = connectNodeAdapter({
    routes: (router) => addServices(router, deps),
    ...{ grpc: true, grpcWeb: false, connect: false },
    readMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: CALL_MS_MAX,
    // Accepts no compression, because a compressed message would cost the server more than its sender.
    acceptCompression: [],
    binaryOptions: { readUnknownFields: false },
  });
  const settings = { maxConcurrentStreams: STREAMS_MAX, maxHeaderListSize: METADATA_BYTES_MAX };
  const secure = tls && createSecureServer({ ...tls, settings });
  const server: Http2Server | Http2SecureServer = secure ?? createServer({ settings });
  const calls = new GrpcCalls(server, limits);
  server.on("request", (req, res) => {
    // Any client, such as kubelet, may check the health of the server. A health watch requires trust, because it is long-lived.
    const address = req.socket.remoteAddress;
    const mayAsk = trust.isTrusted(address);
    if (!mayAsk && req.url !== HEALTH_CHECK) {
      onRejected("untrusted", { address });
      refuse(req, res, UNTRUSTED);
    } else if (!calls.begin(req, KINDS.get(req.url) ?? "single")) {
      onRejected("overloaded", { address });
      refuse(req, res, LIMIT_REACHED);
    } else handler(req, res);
    // An untrusted connection gets one response and is then closed, like an untrusted HTTP connection.
    if (!mayAsk) req.stream.session?.close();
  });
  server.on("sessionError", () => undefined);
  const onLimitReached = (address: string | undefined): void => onRejected("overloaded", { address });
  const connections = boundConnections(server, limits, { trust, onLimitReached });
  return {
    server,
    setSecureContext: secure && ((certificate) => secure.setSecureContext(certificate)),
    end: (graceMs) => calls.end(server, graceMs, connections),
  };
}

const UNTRUSTED = {
  code: Code.PermissionDenied,
  message: "this address is not a trusted gateway and may not request decisions",
};
const LIMIT_REACHED = { code: Code.Unavailable, message: "the gate has too many concurrent calls" };

/** Sends a Trailers-Only response, which ends the stream with its headers. */
function refuse(
  req: Http2ServerRequest,
  { stream }: Http2ServerResponse,
  { code, message }: { readonly code: Code; readonly message: string },
): void {
  req.resume();
  if (stream.destroyed) return;
  const headers = {
    ":status": 200,
    "content-type": "application/grpc",
    "grpc-status": String(code),
    "grpc-message": message,
  };
  stream.respond(headers, { endStream: true });
}

function addServices(router: ConnectRouter, deps: GrpcExtAuthDeps): void {
  const { checking, rateLimit, onInternalError } = deps;
  router.service(Authorization, { check: (request) => reported(onInternalError, check(checking, request)) });
  router.service(RateLimitService, {
    shouldRateLimit: (request) => reported(onInternalError, shouldRateLimit(rateLimit, request)),
  });
  addHealth(router, deps);
  const reflection = new Reflection(OFFERED);
  router.service(V1, {
    async *serverReflectionInfo(requests) {
      for await (const request of bounded(requests)) yield reflection.respond(request);
    },
  });
  router.service(V1Alpha, {
    async *serverReflectionInfo(requests) {
      for await (const request of bounded(requests)) {
        const asked = fromBinary(ServerReflectionRequestSchema, toBinary(V1AlphaRequest, request));
        yield fromBinary(V1AlphaResponse, toBinary(ServerReflectionResponseSchema, reflection.respond(asked)));
      }
    },
  });
}

/** Limits the number of requests in a reflection call, because each response may contain all descriptors. */
async function* bounded<T>(requests: AsyncIterable<T>): AsyncIterable<T> {
  let left = REFLECTED_MAX;
  for await (const request of requests) {
    if (left-- === 0) throw new ConnectError("too much was asked of reflection in one call", Code.ResourceExhausted);
    yield request;
  }
}

function addHealth(router: ConnectRouter, { isReady }: GrpcExtAuthDeps): void {
  const known = new Set<string>(["", ...OFFERED.map(({ typeName }) => typeName)]);
  const status = (): Serving => (isReady() ? Serving.SERVING : Serving.NOT_SERVING);
  router.service(Health, {
    check({ service }) {
      if (!known.has(service)) throw new ConnectError("there is no such service here", Code.NotFound);
      return { status: status() };
    },
    list: () => ({ statuses: Object.fromEntries([...known].map((name) => [name, { status: status() }])) }),
    async *watch({ service }, { signal }) {
      if (!known.has(service)) {
        yield { status: Serving.SERVICE_UNKNOWN };
        return;
      }
      let announced: Serving | undefined;
      while (!signal.aborted) {
        const now = status();
        if (now !== announced) yield { status: now };
        announced = now;
        await new Promise((resolve) => setTimeout(resolve, POLL_MS).unref());
      }
    },
  });
}

/** Reports an internal error, and sends the client a response that does not contain the error's text. */
async function reported<T>(onInternalError: (error: unknown) => void, response: Promise<T>): Promise<T> {
  try {
    return await response;
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    onInternalError(error);
    throw new ConnectError("the gate failed to handle the request", Code.Internal);
  }
}
