import { performance } from "node:perf_hooks";
import * as z from "zod";
import { ratelimitPermission } from "../../../core/permissions/root-key.ts";
import { consumeLimits } from "../../domain/consume-limits.ts";
import { knownValue } from "../../domain/lookups.ts";
import { namespaceToLimit } from "../../domain/namespaces.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { onNamespace, onNamespaces } from "../needed-permissions.ts";
import { Identifier, Namespace } from "./schemas.ts";

const THIRTY_DAYS_MS = 2_592_000_000;

const Body = z.strictObject({
  namespace: Namespace,
  identifier: Identifier,
  limit: z
    .int()
    .min(1)
    .describe("Units per window, unless an override says otherwise.")
    .meta({ examples: [10] }),
  duration: z
    .int()
    .min(1000)
    .max(THIRTY_DAYS_MS)
    .describe("Length of the window, ms.")
    .meta({ examples: [60_000] }),
  cost: z
    .int()
    .min(0)
    .default(1)
    .describe("Units to consume; 0 only looks.")
    .meta({ examples: [1] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  success: z.boolean().describe("false: over the limit. The status is 200 all the same."),
  limit: z.int().describe("The limit that was applied."),
  remaining: z.int().describe("Units left in this window."),
  reset: z.int().describe("When the window ends, Unix milliseconds."),
  overrideId: z.string().optional().describe("The override that was applied, if one was."),
});
type Data = z.input<typeof Data>;

export const limit = defineProcedure({
  path: "ratelimit.limit",
  summary: "Check and consume a rate limit",
  description:
    "Counts the identifier within the namespace, in windows that are aligned to the clock and slide into one another. A refused call consumes nothing. A namespace is made when it is first used.",
  permissions: [onNamespace("limit"), onNamespaces("create_namespace", "when the namespace is new")],
  errors: ["ratelimit_namespace_gone"],
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body>): Promise<Data> {
  const startedMs = performance.now();
  const { body, caller, deps, origin } = call;
  const { workspaceId } = caller;
  const { identifier, cost } = body;
  const namespace = await namespaceToLimit(call, body.namespace);
  call.require(ratelimitPermission("limit", namespace.id));
  const override = knownValue(await deps.projection.findOverride(workspaceId, namespace.id, identifier));
  const applied = override?.limit ?? body.limit;

  const consumed = await consumeLimits(deps, [
    {
      workspaceId,
      scope: { kind: "namespace", value: namespace.id },
      identifier,
      limit: applied,
      durationMs: override?.durationMs ?? body.duration,
      cost,
      accuracy: override?.async === true ? "local" : "strict",
    },
  ]);
  const [outcome] = consumed.limits;
  if (outcome === undefined) throw new Error("one limit was asked about and none was answered");

  deps.events.add({
    type: "ratelimit",
    // One limit per request: its id is as unique as an event's must be.
    id: origin.requestId,
    requestId: origin.requestId,
    timeMs: consumed.nowMs,
    workspaceId,
    namespaceId: namespace.id,
    identifier,
    passed: outcome.passed,
    latencyMs: performance.now() - startedMs,
    overrideId: override?.id,
    limit: applied,
    remaining: outcome.remaining,
    resetMs: outcome.resetMs,
    cost,
  });
  return {
    success: outcome.passed,
    limit: applied,
    remaining: outcome.remaining,
    reset: outcome.resetMs,
    ...(override === undefined ? {} : { overrideId: override.id }),
  };
}
