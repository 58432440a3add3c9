import * as z from "zod";
import { insertAudit } from "../../db/audit.ts";
import { onNamespace, onNamespaces, refusedAsNotFound } from "../../domain/permissions/required-permissions.ts";
import { type Limited, limitOnce } from "../../domain/ratelimits/limit-once.ts";
import type { Call } from "../../procedure.ts";
import { defineV1Procedure } from "../procedure.ts";
import { Duration, NamespaceName } from "./schemas.ts";

const THIRTY_DAYS_MS = 2_592_000_000;
const RESOURCES_MAX = 20;
const MEMBERS_MAX = 100;

const Details = z
  .record(z.string().max(256), z.union([z.string().max(1024), z.boolean(), z.number(), z.null()]))
  .meta({ maxProperties: MEMBERS_MAX, examples: [{ plan: "pro" }] });

const Resource = z.object({
  type: z
    .string()
    .min(1)
    .max(256)
    .describe("Kind of the resource.")
    .meta({ examples: ["project"] }),
  id: z
    .string()
    .min(1)
    .max(256)
    .describe("Id of the resource.")
    .meta({ examples: ["p_123"] }),
  name: z
    .string()
    .max(256)
    .optional()
    .describe("Name of the resource.")
    .meta({ examples: ["dub"] }),
  meta: Details.optional().describe("Metadata of the resource."),
});

const Body = z.object({
  namespace: NamespaceName.min(1).default("default").describe("Name of the namespace."),
  identifier: z
    .string()
    .min(1)
    .max(512)
    .describe("Identifier of the limited caller: a user id, an address, or another string that distinguishes callers.")
    .meta({ examples: ["user_123"] }),
  limit: z
    .int()
    .min(1)
    .describe("Units per window, unless an override applies.")
    .meta({ examples: [10] }),
  duration: Duration.max(THIRTY_DAYS_MS),
  cost: z
    .int()
    .min(0)
    .default(1)
    .describe("Units to consume; 0 checks the limit without consuming.")
    .meta({ examples: [1] }),
  async: z
    .boolean()
    .default(false)
    .describe(
      "Whether the api-server process counts by itself and syncs in the background, which is faster but less exact.",
    ),
  meta: Details.optional().describe("Accepted for compatibility; not stored."),
  resources: z
    .array(Resource)
    .max(RESOURCES_MAX)
    .optional()
    .describe("Resources that the call concerns. If given, the audit log records them together with the decision."),
});
type Body = z.output<typeof Body>;

const ResponseBody = z.object({
  success: z.boolean().describe("Whether the request is within the limit. The status is 200 in either case."),
  limit: z
    .int()
    .describe("Limit that was applied, in units per window.")
    .meta({ examples: [10] }),
  remaining: z
    .int()
    .describe("Remaining units of this window.")
    .meta({ examples: [9] }),
  reset: z
    .int()
    .describe("End of the window, Unix ms.")
    .meta({ examples: [1_767_225_600_000] }),
});

const required = {
  limit: onNamespace("limit"),
  createNamespace: refusedAsNotFound(onNamespaces("create_namespace", "when the namespace is new")),
};

export const limit = defineV1Procedure({
  path: "ratelimits.limit",
  method: "POST",
  successor: "ratelimit.limit",
  effect: "read",
  summary: "Check and consume a rate limit",
  description:
    "Counts requests of the identifier in the namespace, in a sliding window that is aligned to the clock. A rejected call consumes nothing. The first use creates the namespace.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found", "ratelimit_namespace_gone"],
  input: Body,
  response: ResponseBody,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<z.input<typeof ResponseBody>> {
  const { async, resources, ...request } = call.body;
  const limited = await limitOnce(call, required, { ...request, accuracy: async ? "local" : "strict" });
  if (resources !== undefined && resources.length > 0) await recordDecision(call, limited, resources);
  const { charge, outcome } = limited;
  return { success: outcome.passed, limit: charge.limit, remaining: outcome.remaining, reset: outcome.resetMs };
}

const recordDecision = (
  call: Call<Body>,
  { namespaceId, outcome }: Limited,
  resources: readonly z.output<typeof Resource>[],
): Promise<void> =>
  insertAudit(call.deps.db, call, [
    {
      event: outcome.passed ? "ratelimit.success" : "ratelimit.denied",
      description: `${outcome.passed ? "Passed" : "Denied"} a call in rate-limit namespace ${namespaceId}`,
      targets: [{ type: "ratelimitNamespace", id: namespaceId, name: call.body.namespace, meta: { resources } }],
    },
  ]);
