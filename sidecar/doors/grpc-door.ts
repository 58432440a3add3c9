import { createServer, type Http2Server, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { type CheckParts, check } from "./envoy-check.ts";
import { type RateLimiting, shouldRateLimit } from "./envoy-rate-limit.ts";
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
import type { IsTrusted } from "./trusted.ts";

/*
 * The gRPC door, over HTTP/2 without TLS: Envoy's ext_authz and rate limit service, health and reflection. This file and what it imports is
 * loaded when the door is opened, so that a gate without it pays nothing. In a bundle it is a file of its own with a copy of what it imports: what
 * decides is passed in.
 */

export interface GrpcDoorParts {
  readonly checking: CheckParts;
  readonly rateLimit: RateLimiting;
  readonly isTrusted: IsTrusted;
  readonly onUntrusted: (address: string | undefined) => void;
  readonly isReady: () => boolean;
  /** Counts and logs an unexpected error. Never throws. */
  readonly onFault: (error: unknown) => void;
}

const HEALTH_CHECK = `/${Health.typeName}/Check`;
const OFFERED = [Authorization, RateLimitService, Health, V1, V1Alpha];
/** Those that watch the health of a service hear of a change within this time. */
const LOOK_MS = 250;
const MESSAGE_BYTES_MAX = 1024 * 1024;
const STREAMS_MAX = 1_000;
/** A call that says no deadline of its own has none of ours either; one that does may not wait longer than this. */
const CALL_MS_MAX = 60_000;

export function createGrpcDoor(parts: GrpcDoorParts): Http2Server {
  const handler = connectNodeAdapter({
    routes: (router) => addServices(router, parts),
    ...{ grpc: true, grpcWeb: false, connect: false },
    readMaxBytes: MESSAGE_BYTES_MAX,
    maxTimeoutMs: CALL_MS_MAX,
  });
  const server = createServer({ settings: { maxConcurrentStreams: STREAMS_MAX } });
  server.on("request", (req, res) => {
    // Whether this server is healthy may be asked by anyone who reaches it, such as kubelet; but not watched, which lasts and costs.
    const address = req.socket.remoteAddress;
    if (parts.isTrusted(address) || req.url === HEALTH_CHECK) handler(req, res);
    else {
      parts.onUntrusted(address);
      refuseUntrusted(req, res);
    }
  });
  server.on("sessionError", () => undefined);
  return server;
}

/** An answer of trailers alone, which ends the stream with its headers. */
function refuseUntrusted(req: Http2ServerRequest, { stream }: Http2ServerResponse): void {
  req.resume();
  if (stream.destroyed) return;
  const headers = {
    ":status": 200,
    "content-type": "application/grpc",
    "grpc-status": String(Code.PermissionDenied),
    "grpc-message": "this address may not ask the gate: it is not among its trusted gateways",
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
      for await (const request of requests) yield reflection.answer(request);
    },
  });
  router.service(V1Alpha, {
    async *serverReflectionInfo(requests) {
      for await (const request of requests) {
        const asked = fromBinary(ServerReflectionRequestSchema, toBinary(V1AlphaRequest, request));
        yield fromBinary(V1AlphaResponse, toBinary(ServerReflectionResponseSchema, reflection.answer(asked)));
      }
    },
  });
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
