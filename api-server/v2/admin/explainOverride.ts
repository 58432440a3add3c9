import * as z from "zod";
import { explainOverrides } from "../../../core/ratelimits/overrides.ts";
import { findNamespace } from "../../db/namespaces.ts";
import { findOverride, listOverridePatterns } from "../../db/overrides.ts";
import { onNamespace } from "../../domain/permissions/required-permissions.ts";
import { readCounts } from "../../domain/ratelimits/read-counts.ts";
import { namespaceNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { Identifier, Namespace, OverrideOut, toOverrideOut } from "../ratelimit/schemas.ts";
import { unixMs } from "../schemas.ts";
import { CountOut } from "./access-schemas.ts";

/** Maximum number of matches in the response. It is limited because thousands of patterns may match. */
const MATCHES_MAX = 50;

const Body = z.strictObject({
  namespace: Namespace,
  identifier: Identifier,
  limit: z
    .int()
    .min(1)
    .optional()
    .describe("Limit in the caller's `ratelimit.limit` calls. If given, the count is read even if no override applies.")
    .meta({ examples: [10] }),
  duration: z
    .int()
    .min(1000)
    .optional()
    .describe(
      "Window length in the caller's `ratelimit.limit` calls, in ms. If given, the count is read even if no override applies.",
    )
    .meta({ examples: [60_000] }),
});
type Body = z.output<typeof Body>;

const Data = z.strictObject({
  now: unixMs("The server's time, Unix milliseconds."),
  matches: z
    .array(
      OverrideOut.extend({
        async: z.boolean().describe("Whether each process counts by itself and syncs in the background."),
        literals: z
          .int()
          .describe("Number of characters of the pattern other than `*`.")
          .meta({ examples: [8] }),
        overriddenBy: z
          .enum(["exactOne", "moreLiterals", "smallerId"])
          .optional()
          .describe(
            "Why it does not apply: another override has exactly this identifier, or more literal characters, or as many and a smaller id. Omitted for the override that applies.",
          ),
      }),
    )
    .describe(
      "The override that applies, then others that match, at most 50. If empty, the limit in the calls applies.",
    ),
  matchCount: z
    .int()
    .describe("Number of overrides whose pattern matches the identifier.")
    .meta({ examples: [2] }),
  count: CountOut.optional().describe(
    "Current use of the limit that applies. Omitted while the shared counters are unreachable, or if the limit is unknown.",
  ),
});
type Data = z.input<typeof Data>;

const required = { readOverride: onNamespace("read_override") };

export const explainOverride = defineProcedure({
  path: "admin.explainOverride",
  effect: "read",
  summary: "Explain which limit applies to an identifier",
  description:
    "Returns the override that `ratelimit.limit` and gates apply to this identifier, and the others that match. Nothing is counted.",
  permissions: required,
  errors: ["ratelimit_namespace_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const { identifier } = body;
  const { workspaceId } = caller;
  const namespace = await findNamespace(deps.db, { workspaceId, namespace: body.namespace });
  if (namespace === undefined) throw namespaceNotFound(body.namespace);
  call.require(required.readOverride, namespace.id);
  const ref = { workspaceId, namespaceId: namespace.id, identifier };
  const [exact, patterns] = await Promise.all([findOverride(deps.db, ref), listOverridePatterns(deps.db, ref)]);
  // Both queries find a stored pattern that equals the identifier in the request. It is returned only once.
  const overrides = [...(exact === undefined ? [] : [exact]), ...patterns.filter(({ id }) => id !== exact?.id)];
  const matches = explainOverrides(overrides, identifier);
  const applied = matches[0]?.override;
  const limit = applied?.max_count ?? body.limit;
  const durationMs = applied?.duration_ms ?? body.duration;
  const counts =
    limit === undefined || durationMs === undefined
      ? undefined
      : await readCounts(deps, [
          { workspaceId, scope: { kind: "namespace", value: namespace.id }, identifier, limit, durationMs },
        ]);
  const count = counts?.[0];
  return {
    now: deps.nowMs(),
    matches: matches.slice(0, MATCHES_MAX).map(({ override, literals, overriddenBy }) => ({
      ...toOverrideOut(override),
      async: override.async,
      literals,
      ...(overriddenBy === undefined ? {} : { overriddenBy }),
    })),
    matchCount: matches.length,
    ...(count === undefined ? {} : { count: { used: count.used, remaining: count.remaining, reset: count.resetMs } }),
  };
}
