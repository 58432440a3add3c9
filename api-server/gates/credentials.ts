import type { FastifyInstance, FastifyRequest } from "fastify";
import { Counter, type Registry } from "prom-client";
import { PublicError } from "../../core/errors.ts";
import {
  CREDENTIALS_PATH,
  type CredentialsReply,
  CredentialsRequest,
  mayBeGateToken,
  podIdOf,
  podOfToken,
  policyOfPod,
  type TokenReviewStatus,
} from "../../core/gates/credentials.ts";
import { defineMetrics, exported } from "../../core/metric.ts";
import { withoutPort } from "../../core/verification/ip-address.ts";
import type { GateUsers } from "../../edge/gate-users/contract.ts";
import { logThrottled } from "../../edge/log-throttle.ts";
import { findPolicy } from "../db/policies.ts";
import type { Deps } from "../deps.ts";
import type { ErrorSender } from "../plugins/errors.ts";
import { RequestLimits } from "./request-limits.ts";

/*
 * Endpoint from which gates obtain a Redis user (`core/gates/credentials.ts`). It is not a procedure of the API, because it accepts the
 * token of a pod instead of a root key, and only gates of the same release call it.
 */

export interface GateCredentials {
  /** Name of the gates' cluster. The manager names that the cluster's operator uses begin with it. */
  readonly cluster: string;
  /** Calls the TokenReview API of the cluster that issued the token. Throws if it does not respond. */
  readonly reviewToken: (token: string) => Promise<TokenReviewStatus>;
}

/** Retry interval of a gate whose policy does not exist yet. */
const POLICY_RETRY_S = 5;

interface Parts extends Pick<Deps, "db" | "log" | "throttle" | "nowMs"> {
  readonly gates: GateCredentials;
  readonly gateUsers: GateUsers;
  readonly bounds: RequestLimits;
}

export const CREDENTIAL_METRICS = defineMetrics({
  requests: {
    name: "postern_gate_credentials_total",
    type: "counter",
    help: "Requests from gates for a Redis user, by outcome",
    unit: "requests",
    labels: { outcome: "`issued`, or the kind of an error" },
    bad: "Persistent errors: gates do not become ready. `unauthorized`: the pod's token was rejected; see the gate's log.",
  },
});

export function registerGateCredentials(
  app: FastifyInstance,
  { sendError, metrics, ...given }: Omit<Parts, "bounds"> & { sendError: ErrorSender; metrics: Registry },
): void {
  const issued = new Counter({
    ...exported(CREDENTIAL_METRICS.requests),
    registers: [metrics],
  });
  const parts = { ...given, bounds: new RequestLimits() };
  // The OpenAPI document excludes this endpoint, because its format may change with any release.
  app.post(CREDENTIALS_PATH, { config: { isOpen: true } }, async (request, reply) => {
    try {
      const credentials = await issue(parts, request);
      issued.inc({ outcome: "issued" });
      return reply.header("Cache-Control", "no-store").send(credentials);
    } catch (error) {
      issued.inc({ outcome: error instanceof PublicError ? error.kind : "unexpected_error" });
      sendError(request, reply, error);
      return reply;
    }
  });
}

async function issue(parts: Parts, request: FastifyRequest): Promise<CredentialsReply> {
  const { db, gates, gateUsers, bounds, log, nowMs } = parts;
  const address = withoutPort(request.ip);
  const token = /^Bearer (\S+)$/.exec(request.headers.authorization ?? "")?.[1];
  if (token === undefined || !mayBeGateToken(token, nowMs())) throw noToken();
  const requested = readRequest(request.body);
  if (requested.cluster !== gates.cluster) {
    throw new PublicError("forbidden", `This server issues Redis users only to gates of cluster ${gates.cluster}.`);
  }
  const pod = podOfToken(await bounds.ask(address, () => reviewed(parts, token)));
  if (pod === undefined) {
    bounds.tokenRefused(address);
    throw noToken();
  }
  const { workspaceId } = requested;
  const { policyId, manager } = policyOfPod(requested, pod);
  const policy = await findPolicy(db, { workspaceId, policyId });
  // A namespace is permitted to use this workspace if the operator has created a policy for the namespace in it.
  if (policy?.manager !== manager) {
    throw new PublicError("policy_not_found", "The pod's namespace has no such policy in this workspace.", {
      retryAfterS: POLICY_RETRY_S,
    });
  }
  bounds.issue(address, pod.uid);
  const podId = podIdOf(pod);
  const user = await gateUsers.issue({ workspaceId, policyId, podId, podUid: pod.uid }).catch((cause: unknown) => {
    const reason = cause instanceof Error ? cause.message : String(cause);
    logThrottled(parts, { reason, message: "Redis cannot create users for gates" });
    throw new PublicError("service_unavailable", "Redis cannot create users at the moment; try again later.");
  });
  log.info({ podId, workspaceId, policyId }, "a gate received a Redis user");
  return user;
}

async function reviewed(parts: Parts, token: string): Promise<TokenReviewStatus> {
  try {
    return await parts.gates.reviewToken(token);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    logThrottled(parts, { reason, message: "the Kubernetes API cannot review tokens" });
    throw new PublicError(
      "service_unavailable",
      "The Kubernetes API cannot review the token at the moment; try again later.",
    );
  }
}

const noToken = (): PublicError =>
  new PublicError(
    "unauthorized",
    "The request requires a token of a pod's ServiceAccount with the audience `postern`.",
  );

function readRequest(body: unknown): CredentialsRequest {
  try {
    return CredentialsRequest.parse(JSON.parse((body as Buffer).toString()));
  } catch {
    throw new PublicError("invalid_input", "The body does not name a policy of a cluster.", { errors: [] });
  }
}
