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
import { boundConnections, type Door, type DoorConnectionLimits } from "./door-connections.ts";
import { type CheckParts, check } from "./envoy-check.ts";
import { type RateLimiting, shouldRateLimit } from "./envoy-rate-limit.ts";
import { CALL_MS_MAX, type CallKind, type GrpcCallLimits, GrpcCalls } from "./grpc-calls.ts";
import { Authorization } from "./protocol/envoy/service/auth/v3/external_auth_pb.js";
import { RateLimitService } from "./protocol/envoy/service/ratelimit/v3/rls_pb.js";
import { Health, HealthCheckResponse_ServingStatus as Serving } from "./protocol/grpc/health/v1/health_pb.js";
import {
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
  ServerReflection as V1,
} from "./protocol/grpc/reflection/v1/reflection_pb.js";
import {
  ServerReflection as V1Alpha,
  ServerReflectionRequestSchema as V1AlphaRequest,
  ServerReflectionResponseSchema as V1AlphaResponse,
} from "./protocol/grpc/reflection/v1alpha/reflection_pb.js";
import { Reflection } from "./reflection.ts";
import type { Trust } from "./trusted.ts";

/*
 * The gRPC door, over HTTP/2: Envoy's ext_authz and rate limit service, health and reflection. This file and what it imports is
 * loaded when the door is opened, so that a gate without it pays nothing. In a bundle it is a file of its own with a copy of what it imports: what
 * decides is passed in.
 */

export interface GrpcDoorParts {
  readonly checking: CheckParts;
  readonly rateLimit: RateLimiting;
  readonly trust: Trust;
  readonly onTurnedAway: (why: "untrusted" | "crowded", detail: { readonly address: string | undefined }) => void;
  readonly isReady: () => boolean;
  /** Counts and logs an unexpected error. Never throws. */
  readonly onFault: (error: unknown) => void;
}

const HEALTH_CHECK = `/${Health.typeName}/Check`;
const OFFERED = [Authorization, RateLimitService, Health, V1, V1Alpha];
/** Those that watch the health of a service hear of a change within this time. */
const LOOK_MS = 250;
/** The heads of a request, several times over: Envoy tells a header in two ways. With those of all calls at once it is what the door may keep in memory. */
const MESSAGE_BYTES_MAX = 128 * 1024;
/** Calls at once on one connection: Envoy opens more connections when it needs them. */
const STREAMS_MAX = 256;
/** The metadata of a call, of which nothing is read here. */
const METADATA_BYTES_MAX = 16 * 1024;
/** Questions of one call of reflection. */
const REFLECTED_MAX = 200;

const KINDS: ReadonlyMap<string, CallKind> = new Map([
  [`/${Health.typeName}/Watch`, "watch"],
  [`/${V1.typeName}/ServerReflectionInfo`, "limited"],
  [`/${V1Alpha.typeName}/ServerReflectionInfo`, "limited"],
]);

/** `tls`: what `tls.createServer` takes; without it the door speaks no TLS. Throws when its certificate is not usable. */
export function createGrpcDoor(
  parts: GrpcDoorParts,
  limits: DoorConnectionLimits & GrpcCallLimits,
  tls?: TlsOptions,
): Door {
  const { trust, onTurnedAway } = parts;
  const handler = connectNodeAdapter({
    routes: (router) => addServices(router, parts),
    ...{ grpc: true, grpcWeb: false, connect: false },
    readMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: CALL_MS_MAX,
    // A compressed message costs more to read than to send.
    acceptCompression: [],
    binaryOptions: { readUnknownFields: false },
  });
  const settings = { maxConcurrentStreams: STREAMS_MAX, maxHeaderListSize: METADATA_BYTES_MAX };
  const secure = tls && createSecureServer({ ...tls, settings });
  const server: Http2Server | Http2SecureServer = secure ?? createServer({ settings });
  const calls = new GrpcCalls(server, limits);
  server.on("request", (req, res) => {
    // Whether this server is healthy may be asked by anyone who reaches it, such as kubelet; but not watched, which lasts and costs.
    const address = req.socket.remoteAddress;
    const mayAsk = trust.isTrusted(address);
    if (!mayAsk && req.url !== HEALTH_CHECK) {
      onTurnedAway("untrusted", { address });
      refuse(req, res, UNTRUSTED);
    } else if (!calls.begin(req, KINDS.get(req.url) ?? "single")) {
      onTurnedAway("crowded", { address });
      refuse(req, res, CROWDED);
    } else handler(req, res);
    // One answer for each connection, as over HTTP.
    if (!mayAsk) req.stream.session?.close();
  });
  server.on("sessionError", () => undefined);
  const onCrowded = (address: string | undefined): void => onTurnedAway("crowded", { address });
  const connections = boundConnections(server, limits, { trust, onCrowded });
  return {
    server,
    setSecureContext: secure && ((certificate) => secure.setSecureContext(certificate)),
    end: (graceMs) => calls.end(server, graceMs, connections),
  };
}

const UNTRUSTED = {
  code: Code.PermissionDenied,
  message: "this address may not ask the gate: it is not among its trusted gateways",
};
const CROWDED = { code: Code.Unavailable, message: "the gate is asked too much at once" };

/** An answer of trailers alone, which ends the stream with its headers. */
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

function addServices(router: ConnectRouter, parts: GrpcDoorParts): void {
  const { checking, rateLimit, onFault } = parts;
  router.service(Authorization, { check: (request) => reported(onFault, check(checking, request)) });
  router.service(RateLimitService, {
    shouldRateLimit: (request) => reported(onFault, shouldRateLimit(rateLimit, request)),
  });
  addHealth(router, parts);
  const reflection = new Reflection(OFFERED);
  router.service(V1, {
    async *serverReflectionInfo(requests) {
      for await (const request of bounded(requests)) yield reflection.answer(request);
    },
  });
  router.service(V1Alpha, {
    async *serverReflectionInfo(requests) {
      for await (const request of bounded(requests)) {
        const asked = fromBinary(ServerReflectionRequestSchema, toBinary(V1AlphaRequest, request));
        yield fromBinary(V1AlphaResponse, toBinary(ServerReflectionResponseSchema, reflection.answer(asked)));
      }
    },
  });
}

/** Each question may be answered with all that there is to tell. */
async function* bounded<T>(requests: AsyncIterable<T>): AsyncIterable<T> {
  let left = REFLECTED_MAX;
  for await (const request of requests) {
    if (left-- === 0) throw new ConnectError("too much was asked of reflection in one call", Code.ResourceExhausted);
    yield request;
  }
}

function addHealth(router: ConnectRouter, { isReady }: GrpcDoorParts): void {
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
      let told: Serving | undefined;
      while (!signal.aborted) {
        const now = status();
        if (now !== told) yield { status: now };
        told = now;
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS).unref());
      }
    },
  });
}

/** A fault of ours is reported, and its text does not leave the process. */
async function reported<T>(onFault: (error: unknown) => void, answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    onFault(error);
    throw new ConnectError("the gate failed to handle the request", Code.Internal);
  }
}
