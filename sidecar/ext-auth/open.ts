import type { Logger } from "pino";
import { followCertificate } from "../../edge/follow-certificate.ts";
import { LogThrottle } from "../../edge/log-throttle.ts";
import type { Address, ExtAuthConfig, Limits, Timeouts } from "../config.ts";
import { type DecisionDeps, decide } from "../decision/decide.ts";
import type { ReceivedRequest } from "../decision/evaluate-head.ts";
import { listen } from "../http/serve.ts";
import type { ExtAuthServer } from "./connections.ts";
import { createHttpExtAuth, type ExtAuthRejection } from "./http-server.ts";
import { type Descriptor, rateLimit } from "./rate-limit.ts";
import { TRUSTED_BY_CERTIFICATE, trustedAmong } from "./trusted.ts";

/* Opens the ext-auth endpoints. Gateways use them to request decisions on requests that do not pass through the gate. */

export interface ExtAuthDeps {
  readonly decision: DecisionDeps;
  readonly timeouts: Timeouts;
  readonly limits: Limits;
  readonly docsUrl: string;
  readonly isEnding: () => boolean;
  readonly isReady: () => boolean;
  /** Number of requests that were not decided, by reason. */
  readonly rejected: Record<ExtAuthRejection, number>;
  /** Number of responses of the rate limit service, by result. */
  readonly rateLimits: Record<"OK" | "OVER_LIMIT" | "UNDECIDED", number>;
  readonly logger: Logger;
}

export interface ExtAuthServers {
  /** URL of the HTTP ext-auth endpoint; `undefined` if it is not open. */
  readonly authorizeUrl: string | undefined;
  /** URL of the gRPC ext-auth endpoint; `undefined` if it is not open. */
  readonly grpcUrl: string | undefined;
  closeIdle(): void;
  /** Closes the endpoints, after waiting up to `graceMs` for requests in flight. */
  close(graceMs: number): Promise<void>;
}

/** Opens the configured ext-auth endpoints. If a port is not available, closes all of them and throws. */
export async function openExtAuthServers(deps: ExtAuthDeps, config: ExtAuthConfig): Promise<ExtAuthServers> {
  const closers: Array<(graceMs: number) => Promise<void>> = [];
  const idle: Array<() => void> = [];
  const certificate = config.tls?.();
  const { requestHeadMs, certificateMs } = deps.timeouts;
  const clients = certificate?.ca === undefined ? {} : { requestCert: true, rejectUnauthorized: true };
  const tls = certificate && { ...certificate, ...clients, handshakeTimeout: requestHeadMs };
  const trust = certificate?.ca === undefined ? trustedAmong(config.trusted) : TRUSTED_BY_CERTIFICATE;
  const onRejected = rejectedLog(deps);
  const close = async (graceMs: number): Promise<void> => {
    await Promise.all(closers.map((closeOne) => closeOne(graceMs)));
  };

  /** Starts an endpoint, and updates its certificate when the files change. Returns the URL. */
  async function open({ server, setSecureContext, end }: ExtAuthServer, address: Address): Promise<string> {
    const url = await listen(server, address);
    closers.push(end);
    if (config.tls === undefined || setSecureContext === undefined) return url;
    const following = { current: config.tls, log: deps.logger, everyMs: certificateMs };
    const certificates = followCertificate({ setSecureContext }, following);
    closers.push(() => certificates.close());
    return url.replace(/^http:/, "https:");
  }

  async function openAuthorize(address: Address): Promise<string> {
    const { decision, docsUrl, isEnding, limits, timeouts } = deps;
    const httpDeps = { decision, docsUrl, isEnding, trust, onRejected };
    const extAuth = createHttpExtAuth(httpDeps, { ...limits, ...timeouts }, tls);
    const url = await open(extAuth, address);
    idle.push(() => extAuth.server.closeIdleConnections());
    return url;
  }

  async function openGrpc(address: Address): Promise<string> {
    const { decision, docsUrl, isReady } = deps;
    const { policy, verifying, recording, nextId, onInternalError } = decision;
    // The endpoint's libraries are loaded only here, so that a gate without the endpoint uses no memory for them.
    const { createGrpcExtAuth } = await import("./grpc-server.ts");
    const limiting = { policy, counting: verifying, events: recording.events, nextId };
    const grpcDeps = {
      checking: {
        decide: (request: ReceivedRequest, startedMs: number) => decide(decision, request, "request", startedMs),
        docsUrl,
      },
      rateLimit: async (domain: string, descriptors: readonly Descriptor[]) => {
        const limited = await rateLimit(limiting, domain, descriptors);
        deps.rateLimits[limited.kind !== "decided" ? "UNDECIDED" : limited.passed ? "OK" : "OVER_LIMIT"] += 1;
        return limited;
      },
      ...{ trust, isReady, onInternalError, onRejected },
    };
    const extAuth = createGrpcExtAuth(grpcDeps, { ...deps.limits, ...deps.timeouts }, tls);
    const url = await open(extAuth, address);
    return url;
  }

  try {
    const authorizeUrl = config.authorize === undefined ? undefined : await openAuthorize(config.authorize);
    const grpcUrl = config.grpc === undefined ? undefined : await openGrpc(config.grpc);
    return {
      authorizeUrl,
      grpcUrl,
      closeIdle: () => {
        for (const closeIdle of idle) closeIdle();
      },
      close,
    };
  } catch (error) {
    await close(0);
    throw error;
  }
}

const MESSAGES: Readonly<Record<ExtAuthRejection, string>> = {
  untrusted: "a request for a decision came from an untrusted address and was rejected",
  overloaded: "there are more connections or questions at an ext-auth endpoint than it takes at once; one was refused",
  malformed: "a request for a decision does not identify the request to evaluate and was rejected",
};

/** Logs rejected requests, throttled because any client that reaches the port can cause these lines. */
function rejectedLog({ rejected, logger }: Pick<ExtAuthDeps, "rejected" | "logger">) {
  const throttle = new LogThrottle();
  return (kind: ExtAuthRejection, detail: { readonly address: string | undefined; readonly why?: string }): void => {
    rejected[kind] += 1;
    const times = throttle.note(kind);
    if (times !== undefined) logger.warn({ ...detail, times }, MESSAGES[kind]);
  };
}
