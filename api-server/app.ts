import { type FastifyInstance, type FastifyReply, fastify } from "fastify";
import { Registry } from "prom-client";
import type { Certificate } from "../edge/follow-certificate.ts";
import type { GateUsers } from "../edge/gate-users/contract.ts";
import type { Deps } from "./deps.ts";
import { registerDocuments } from "./documents.ts";
import { type GateCredentials, registerGateCredentials } from "./gates/credentials.ts";
import { HEALTHY, type Health } from "./health.ts";
import { addressBehind } from "./plugins/address-behind.ts";
import type { ApiRequest } from "./plugins/api-request.ts";
import { createConnections } from "./plugins/connections.ts";
import { registerDashboardPage } from "./plugins/dashboard-page.ts";
import { createDeadlines } from "./plugins/deadline.ts";
import { createDirectFront, type DirectFront } from "./plugins/direct-front.ts";
import { registerDocsPage } from "./plugins/docs-page.ts";
import { registerErrorPages } from "./plugins/error-pages.ts";
import { createErrorSender, registerRefusals } from "./plugins/errors.ts";
import { createV1Front, registerV1Preflight, type V1Settings } from "./plugins/front-v1.ts";
import { registerHealth } from "./plugins/health.ts";
import { registerMetrics } from "./plugins/metrics.ts";
import { registerArrival, registerProcedures } from "./plugins/pipeline.ts";
import { createRequestIds } from "./plugins/request-ids.ts";
import { serveV1 } from "./plugins/serve-v1.ts";
import { serveV2 } from "./plugins/serve-v2.ts";
import { createV1Uses } from "./plugins/uses-v1.ts";
import { registerSignIn } from "./sign-in/routes.ts";
import { providerOf, type SignInSettings, sessionRulesOf } from "./sign-in/settings.ts";
import { v1Procedures } from "./v1/index.ts";
import { procedures } from "./v2/index.ts";

export interface AppOptions {
  /** The state that `/readyz` reports; always healthy when left out. */
  readonly health?: () => Health;
  /** Addresses or ranges of proxies in front, whose `X-Forwarded-For` is trusted. */
  readonly trustedProxies?: readonly string[];
  /** A request that takes longer is answered with 408. */
  readonly requestTimeoutMs?: number;
  /** The registry for `/metrics`; the parts of a process may share one. */
  readonly metrics?: Registry;
  /** Whether v1 is served, and until when; left out: it is, and that is not decided. */
  readonly v1?: V1Settings;
  /** false: metrics and the page that shows the API are not served here, but on an admin port. */
  readonly hasPages?: boolean;
  /** The folder of the built dashboard; it is not served when left out. */
  readonly dashboard?: string | undefined;
  /** Serves by TLS with it. */
  readonly certificate?: Certificate | undefined;
  /** For gates that get their users of Redis here; none do when left out. */
  readonly gates?: GateCredentials & { readonly users: GateUsers };
  /** How people sign in to the dashboard. */
  readonly signIn?: SignInSettings;
}

/** Of a parameter in a path, which only leftovers of v1 have: no id is longer. What is longer is no path of ours. */
const PARAMETER_LENGTH_MAX = 255;
const REQUEST_TIMEOUT_MS = 60_000;
/** The most time for a request head, and for a TLS handshake. */
const HEADERS_TIMEOUT_MS = 10_000;
/** How often connections are checked for requests that take too long to arrive. */
const CONNECTIONS_CHECKED_MS = 5_000;

/** Builds the HTTP server on its dependencies, without listening: tests inject requests, `start` calls `listen`. */
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
    // Refused by our own code, in our own form.
    requireHostHeader: false,
    headersTimeout: Math.min(timeoutMs, HEADERS_TIMEOUT_MS),
    connectionsCheckingInterval: Math.min(timeoutMs, CONNECTIONS_CHECKED_MS),
  };
  const { certificate } = options;
  // Node waits for two minutes.
  const handshake = { handshakeTimeout: connection.headersTimeout };
  const app = fastify({
    logger: false,
    // A client's own request id is not used.
    requestIdHeader: false,
    genReqId: nextRequestId,
    trustProxy: options.trustedProxies === undefined ? false : [...options.trustedProxies],
    requestTimeout: timeoutMs,
    routerOptions: { maxParamLength: PARAMETER_LENGTH_MAX },
    // A server of TLS is one of HTTP in all that is used of it; its types are of no common base.
    ...(certificate === undefined
      ? { http: connection }
      : ({ https: { ...connection, ...certificate, ...handshake, allowHalfOpen: true } } as object)),
    forceCloseConnections: "idle",
    return503OnClosing: false,
    frameworkErrors: (error, request, reply) => sendError(request, reply as FastifyReply, error),
    clientErrorHandler: connections.clientErrorHandler,
  });
  connections.guard(app.server);
  const direct = createDirectFront(app.server, {
    nextRequestId,
    addressBehindProxies: options.trustedProxies && addressBehind(options.trustedProxies),
    onFault: (error) => deps.log.error({ err: error }, "a connection failed"),
  });
  app.decorate("direct", direct);

  const v1: V1Settings = options.v1 ?? { isServed: true };
  const front = createV1Front(v1);
  const uses = createV1Uses(deps);
  app.addHook("onClose", () => uses.settle());
  const registry = options.metrics ?? new Registry();
  const metrics = registerMetrics(app, registry, { isV1Served: v1.isServed, isExposed: hasPages });
  const observe = (request: ApiRequest, status: number): void =>
    metrics.observe(request.routeOptions.url ?? "unknown", status, request.startedMs);
  const sendError = createErrorSender(deps, observe, front);
  const deadlines = createDeadlines(app, deps, { timeoutMs, sendError });

  registerArrival(app);
  registerRefusals(app, sendError);
  registerHealth(app, options.health ?? (() => HEALTHY), observe);
  registerErrorPages(app, sendError);
  registerDocuments(app);
  if (hasPages) registerDocsPage(app, { makesCalls: true });
  if (options.dashboard !== undefined) registerDashboardPage(app, { folder: options.dashboard });
  registerV1Preflight(app, front);
  const ofV1 = v1Procedures.map((procedure) => serveV1(procedure, { front, uses }));
  const served = [...procedures.map(serveV2), ...ofV1];
  if (options.gates !== undefined) {
    const { users: gateUsers, ...gates } = options.gates;
    registerGateCredentials(app, { ...deps, gates, gateUsers, sendError, metrics: registry });
  }
  const signIn = options.signIn ?? {};
  const sessionRules = sessionRulesOf(signIn, { isTls: certificate !== undefined });
  registerProcedures(app, { deps, sessionRules, deadlines, sendError, observe, direct }, served);
  // After the procedures, because its bodies are read as theirs are.
  registerSignIn(app, { deps, sendError, rules: sessionRules, bounds: signIn.bounds, provider: providerOf(signIn) });
  await app.ready();
  return app;
}

declare module "fastify" {
  interface FastifyInstance {
    /** Serves plain calls of hot procedures. */
    readonly direct: DirectFront;
  }
}
