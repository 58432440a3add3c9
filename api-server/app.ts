import { type FastifyInstance, type FastifyReply, fastify } from "fastify";
import { Registry } from "prom-client";
import type { Certificate } from "../edge/follow-certificate.ts";
import type { GateUsers } from "../edge/gate-users/contract.ts";
import type { Deps } from "./deps.ts";
import { type GateCredentials, registerGateCredentials } from "./gates/credentials.ts";
import { HEALTHY, type Health } from "./health/health.ts";
import { addressBehind, amongProxies } from "./plugins/address-behind.ts";
import { type ApiRequest, createRequestIds } from "./plugins/api-request.ts";
import { createConnections, HEAD_MS_MAX, READ_MS_MAX } from "./plugins/connections.ts";
import { registerDashboardPage } from "./plugins/dashboard-page.ts";
import { createDeadlines } from "./plugins/deadline.ts";
import { createDirectFront, type DirectFront } from "./plugins/direct-front.ts";
import { registerDocsPage, registerDocuments } from "./plugins/docs-page.ts";
import { registerErrorPages } from "./plugins/error-pages.ts";
import { createErrorSender, registerRefusals } from "./plugins/errors.ts";
import { registerHealth } from "./plugins/health.ts";
import { CONNECTIONS_MAX, limitConnections } from "./plugins/limit-connections.ts";
import { registerConnectionMetrics, registerMetrics } from "./plugins/metrics.ts";
import type { OldApi } from "./plugins/old-api.ts";
import { registerArrival, registerProcedures } from "./plugins/pipeline.ts";
import { serveV2 } from "./plugins/serve-v2.ts";
import { registerSignIn } from "./sign-in/routes.ts";
import { providerOf, type SignInSettings, sessionRulesOf } from "./sign-in/settings.ts";
import { procedures } from "./v2/index.ts";

export interface AppOptions {
  /** Returns the state that `/readyz` reports. Default: always healthy. */
  readonly health?: () => Health;
  /** Addresses or CIDR ranges of trusted proxies. The `X-Forwarded-For` header is used only if it comes from one of them. */
  readonly trustedProxies?: readonly string[];
  /** Maximum duration of a request; longer ones return 408. */
  readonly requestTimeoutMs?: number;
  /** Maximum number of concurrent connections, including TLS handshakes. Default: 1,000. */
  readonly maxConnections?: number | undefined;
  /** Time after which a connection is closed if its client reads none of a pending response. Only tests set it. */
  readonly readTimeoutMs?: number;
  /** Registry for `/metrics`; the components of a process can share one. */
  readonly metrics?: Registry;
  /** An older version of the API, to be served in addition to v2. */
  readonly oldApi?: OldApi | undefined;
  /** Whether this server serves metrics and the API page; `false` if an admin port serves them. */
  readonly hasPages?: boolean;
  /** Folder of the built dashboard; `undefined` if the dashboard is not served. */
  readonly dashboard?: string | undefined;
  /** Certificate for TLS; `undefined` for plain HTTP. */
  readonly certificate?: Certificate | undefined;
  /** Lets gates obtain their Redis users from this server. If `undefined`, they cannot. */
  readonly gates?: GateCredentials & { readonly users: GateUsers };
  /** Configures sign-in to the dashboard. */
  readonly signIn?: SignInSettings;
}

/**
 * Maximum length of a path parameter: no id is longer, so a request with a longer parameter gets 404. Only unversioned v1 paths have
 * parameters.
 */
const PARAMETER_LENGTH_MAX = 255;
const REQUEST_TIMEOUT_MS = 60_000;
/** Interval of the check for requests that take too long to arrive. */
const CONNECTIONS_CHECKED_MS = 5_000;

/** Builds the HTTP server, but does not listen: `start` calls `listen`, and tests inject requests without a port. */
export async function buildApp(deps: Deps, options: AppOptions = {}): Promise<FastifyInstance> {
  const hasPages = options.hasPages !== false;
  const timeoutMs = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const nextRequestId = createRequestIds(deps);
  const connections = createConnections({
    nextRequestId,
    docsUrl: () => deps.docsUrl,
    observe: (status, startedMs) => metrics.observe("unknown", status, startedMs),
  });
  const connection = {
    // Lets fastify accept a request without `Host`, so that the pipeline can reject it with the usual error body.
    requireHostHeader: false,
    headersTimeout: Math.min(timeoutMs, HEAD_MS_MAX),
    connectionsCheckingInterval: Math.min(timeoutMs, CONNECTIONS_CHECKED_MS),
  };
  const { certificate } = options;
  const readMs = options.readTimeoutMs ?? READ_MS_MAX;
  const handshake = { handshakeTimeout: connection.headersTimeout };
  const app = fastify({
    logger: false,
    // Ignores request ids that clients send.
    requestIdHeader: false,
    genReqId: nextRequestId,
    trustProxy: options.trustedProxies === undefined ? false : [...options.trustedProxies],
    requestTimeout: timeoutMs,
    // Idle time after which Node closes a connection. It does not cut off requests, because any activity on the connection restarts the
    // timer, and no request takes this long to handle.
    connectionTimeout: readMs,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    // The cast treats a TLS server as an HTTP server. It is safe, because this code uses only members that both have; the types just lack a
    // common base.
    ...(certificate === undefined
      ? { http: connection }
      : ({ https: { ...connection, ...certificate, ...handshake, allowHalfOpen: true } } as object)),
    forceCloseConnections: "idle",
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => sendError(request, reply as FastifyReply, error),
    clientErrorHandler: connections.clientErrorHandler,
  });
  connections.guard(app.server);
  const direct = createDirectFront(
    app.server,
    {
      nextRequestId,
      addressBehindProxies: options.trustedProxies && addressBehind(options.trustedProxies),
      onInternalError: (error) => deps.log.error({ err: error }, "a connection failed"),
    },
    { readMs },
  );
  app.decorate("direct", direct);
  const registry = options.metrics ?? new Registry();
  const limit = limitConnections(app.server, {
    max: options.maxConnections ?? CONNECTIONS_MAX,
    isProxy: amongProxies(options.trustedProxies ?? []),
    awaitedSince: (socket, openedMs) => {
      const connection = direct.connectionOf(socket);
      if (connection === undefined) return connections.awaitedSince(socket, openedMs);
      const { streamAtNode } = connection;
      if (streamAtNode !== undefined) return connections.awaitedSince(streamAtNode, connection.sinceMs);
      return connection.awaited === undefined ? undefined : connection.sinceMs;
    },
    onLimit: registerConnectionMetrics(registry, () => limit),
  });

  const { oldApi } = options;
  app.addHook("onClose", () => oldApi?.settle());
  const metrics = registerMetrics(app, registry, { isV1Served: oldApi?.isServed === true, isExposed: hasPages });
  const observe = (request: ApiRequest, status: number): void =>
    metrics.observe(request.routeOptions.url ?? "unknown", status, request.startedMs);
  const sendError = createErrorSender(deps, observe, oldApi);
  const deadlines = createDeadlines(app, deps, { timeoutMs, sendError });

  registerArrival(app);
  registerRefusals(app, sendError);
  registerHealth(app, options.health ?? (() => HEALTHY), observe);
  registerErrorPages(app, sendError);
  registerDocuments(app, oldApi?.documents);
  if (hasPages) registerDocsPage(app, { makesCalls: true });
  if (options.dashboard !== undefined) registerDashboardPage(app, { folder: options.dashboard });
  oldApi?.register(app, sendError);
  const served = [...procedures.map(serveV2), ...(oldApi?.procedures ?? [])];
  if (options.gates !== undefined) {
    const { users: gateUsers, ...gates } = options.gates;
    registerGateCredentials(app, { ...deps, gates, gateUsers, sendError, metrics: registry });
  }
  const signIn = options.signIn ?? {};
  const sessionRules = sessionRulesOf(signIn, { isTls: certificate !== undefined });
  registerProcedures(app, { deps, sessionRules, deadlines, sendError, observe, direct }, served);
  // Sign-in is registered after the procedures, because it uses their body parser.
  registerSignIn(app, { deps, sendError, rules: sessionRules, bounds: signIn.bounds, provider: providerOf(signIn) });
  await app.ready();
  return app;
}

declare module "fastify" {
  interface FastifyInstance {
    /** Fast path that serves simple calls of frequently used procedures without fastify. */
    readonly direct: DirectFront;
  }
}
