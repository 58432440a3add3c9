import { performance } from "node:perf_hooks";
import * as z from "zod";
import { onNamespace, onNamespaces } from "../../domain/permissions/required-permissions.ts";
import { consumeLimits } from "../../domain/ratelimits/counting.ts";
import { applyLimits, toLimitEvent } from "../../domain/ratelimits/limit-requests.ts";
import { namespacesToLimit } from "../../domain/ratelimits/namespaces-to-limit.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import {
  AppliedLimitOut,
  AppliedOverrideOut,
  Identifier,
  LimitFields,
  Namespace,
  RemainingOut,
  WindowEndOut,
} from "./schemas.ts";

const Body = z
  .array(z.strictObject(LimitFields))
  .min(1)
  .max(100)
  .describe("Limits to check together. If several entries share a counter, their costs add up.");
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  passed: z
    .boolean()
    .describe(
      "Whether all limits passed and were consumed; otherwise no limit was consumed. The status is 200 in either case.",
    ),
  limits: z
    .array(
      z.strictObject({
        namespace: Namespace.describe("Namespace, as in the request."),
        identifier: Identifier,
        passed: z.boolean().describe("Whether this limit, considered alone, allows the call."),
        limit: AppliedLimitOut,
        remaining: RemainingOut,
        reset: WindowEndOut,
        overrideId: AppliedOverrideOut.optional(),
      }),
    )
    .describe("Results in the order of the request."),
});
type Data = z.input<typeof Data>;

const required = {
  limit: onNamespace("limit"),
  createNamespace: onNamespaces("create_namespace", "when a namespace is new"),
};

export const multiLimit = defineProcedure({
  path: "ratelimit.multiLimit",
  effect: "read",
  isHot: true,
  summary: "Check several rate limits, and consume either all or none",
  description:
    "The body is an array. If one of the limits rejects the call, none is consumed, and the limits that pass report their remaining units without the costs of this call. The first use of a namespace creates it.",
  permissions: required,
  errors: ["ratelimit_namespace_gone"],
  body: Body,
  data: Data,
  handle,
});

/**
 * Decides all limits of a call. On a single Redis, all entries are decided and consumed in one step. On a Redis Cluster their counters are
 * in different slots: each counter is updated separately, and consumed units are refunded if another entry is rejected. A limit is never
 * exceeded, but until the refund, another caller may be rejected unnecessarily. If the connection is lost before the refund, the units stay
 * consumed until their window ends.
 */
async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const startedMs = performance.now();
  const { body, deps, origin } = call;
  const namespaces = await namespacesToLimit(
    call,
    required,
    body.map(({ namespace }) => namespace),
  );
  const applied = await applyLimits(
    call,
    body.map((request) => {
      const namespace = namespaces.get(request.namespace);
      if (namespace === undefined) throw new Error(`the namespace ${request.namespace} was neither found nor made`);
      return { namespaceId: namespace.id, request };
    }),
  );
  const consumed = await consumeLimits(
    deps,
    applied.map(({ charge }) => charge),
  );
  const limits = applied.map((one, i): Data["limits"][number] => {
    const outcome = consumed.limits[i];
    const request = body[i];
    if (outcome === undefined || request === undefined) throw new Error(`limit ${i} was asked about and not answered`);
    // The event of the first limit has the request's id as its own, as in a call with a single limit.
    const id = i === 0 ? origin.requestId : `${origin.requestId}_${i}`;
    deps.events.add(toLimitEvent(call, one, outcome, { id, timeMs: consumed.nowMs, startedMs }));
    return {
      namespace: request.namespace,
      identifier: request.identifier,
      passed: outcome.passed,
      limit: one.charge.limit,
      remaining: outcome.remaining,
      reset: outcome.resetMs,
      ...(one.override === undefined ? {} : { overrideId: one.override.id }),
    };
  });
  return { passed: consumed.passed, limits };
}
