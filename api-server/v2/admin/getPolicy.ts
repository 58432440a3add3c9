import * as z from "zod";

import { StoredPolicy } from "../../../core/policies/stored-policy.ts";
import type { PodReportSummary, RuleCount } from "../../../edge/pods/contract.ts";
import { findPolicyOverview, type PolicyOverviewRow } from "../../db/policies.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { findReports } from "../../domain/policies/find-reports.ts";
import { byRule, freshnessOf, readOnStale, stateOf, toJsonMs } from "../../domain/policies/pod-state.ts";
import { policyNotFound } from "../../domain/refusals/refusals.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { PolicyId } from "../policies/schemas.ts";
import { unixMs } from "../schemas.ts";
import { count, PolicyOverview, toOverview } from "./policy-schemas.ts";

/** Maximum number of pods in the response. `dataPlane` counts all pods. */
const PODS_SHOWN_MAX = 1_000;

const Body = z.strictObject({ policyId: PolicyId });
type Body = z.output<typeof Body>;

const PodOut = z.strictObject({
  podId: z
    .string()
    .describe("Name of the pod, as the gate reports it.")
    .meta({ examples: ["shop/orders-7c9d8f6b5-x2k4q"] }),
  state: z
    .enum(["updated", "behind", "unsupported", "silent"])
    .describe(
      "Whether the gate enforces this version or another one, cannot enforce this one, or stopped reporting without announcing a shutdown. In the last case, the other fields are from its last report.",
    ),
  reason: z
    .string()
    .optional()
    .describe("Reason why the gate cannot enforce this version.")
    .meta({ examples: ["format 3 is not known here, where 2 is the highest"] }),
  generation: count("Generation of the policy that the gate enforces; 0 for none.", 4),
  version: count("Version of the policy that the gate enforces; 0 for none.", 12),
  stalenessMs: count("Staleness of the gate's data, ms.", 850),
  freshness: z
    .enum(["Fresh", "Stale", "Expired"])
    .describe(
      "How the policy's `onStale` rates the age of the gate's data: within the bound, past it but still served, or too old to serve.",
    ),
  lastSeenAt: unixMs("When the gate last reported, Unix ms, by the clock of Redis."),
  release: z
    .string()
    .optional()
    .describe("Release of the gate; omitted if the gate does not report it.")
    .meta({ examples: ["0.1.0"] }),
  region: z
    .string()
    .optional()
    .describe("Region of the gate; omitted if the gate does not report it.")
    .meta({ examples: ["eu-1"] }),
  refused: count(
    "Number of requests that the gate rejected, or would have rejected if the mode were not Audit, since its policy took effect.",
    12,
  ),
});

const Data = PolicyOverview.extend({
  policy: z
    .unknown()
    .describe("The stored policy, as `policies.getPolicy` returns it.")
    .meta({ examples: [{ mode: "Enforce", rules: [] }] }),
  podList: z.array(PodOut).describe("Gates of the policy, sorted by name, at most 1,000."),
  refusals: z
    .strictObject({
      since: unixMs("When the first of these gates began to count, Unix ms.").optional(),
      counts: z
        .array(
          z.strictObject({
            rule: z
              .int()
              .describe(
                "Index of the rule in the policy; −1 for the implicit rule, −2 if the path itself was rejected.",
              )
              .meta({ examples: [0] }),
            ruleName: z
              .string()
              .optional()
              .describe("Name of the rule, if it has one.")
              .meta({ examples: ["refund"] }),
            code: z
              .string()
              .describe(
                "Code of the verification, or `MISSING_KEY`, `DENIED`, `MALFORMED`, `TOO_MANY_ATTEMPTS` or `UNAVAILABLE`.",
              )
              .meta({ examples: ["INSUFFICIENT_PERMISSIONS"] }),
            count: count("Number of requests that were rejected or, in mode Audit, would have been.", 214),
          }),
        )
        .describe("Counts per rule and code, largest first."),
      others: count("Number of requests for which gates did not report a rule and a code.", 0),
    })
    .describe("Requests per rule and code, summed over the gates that enforce this version."),
  now: unixMs("Time of this report, Unix ms."),
});
type Data = z.input<typeof Data>;

const required = { readPods: onWorkspace("read_pods") };

export const getPolicy = defineProcedure({
  path: "admin.getPolicy",
  effect: "read",
  summary: "Read a policy with its gates",
  description:
    "Returns the stored policy, what each gate reports, and how many requests each rule has rejected or, in mode Audit, would have rejected.",
  permissions: required,
  errors: ["policy_not_found"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  call.require(required.readPods);
  const { workspaceId } = caller;
  const row = await findPolicyOverview(deps.db, { workspaceId, policyId: body.policyId });
  if (row === undefined) throw policyNotFound(body.policyId);
  const found = await findReports(deps, workspaceId, [row]);
  const { reporting: reports, silent } = found?.[0] ?? { reporting: [], silent: [] };
  const { sinceMs, counts, others } = byRule(reports, row.version);
  const read = StoredPolicy.safeParse(row.policy);
  const rules = read.data?.rules ?? [];
  return {
    ...toOverview(row, found?.[0]),
    policy: read.success ? read.data : row.policy,
    podList: [...silent, ...reports]
      .slice(0, PODS_SHOWN_MAX)
      .sort((a, b) => (a.podId < b.podId ? -1 : 1))
      .map((report) => toPod(report, row)),
    refusals: {
      ...(sinceMs === undefined ? {} : { since: sinceMs }),
      counts: counts.map((one) => withName(one, rules)),
      others,
    },
    now: deps.nowMs(),
  };
}

function withName<Counted extends RuleCount>(
  counted: Counted,
  rules: readonly { readonly name?: string | undefined }[],
): Counted & { ruleName?: string } {
  const ruleName = rules[counted.rule]?.name;
  return ruleName === undefined ? counted : { ...counted, ruleName };
}

function toPod(report: PodReportSummary, { version, on_stale }: PolicyOverviewRow): z.input<typeof PodOut> {
  const { podId, generation, release, region, refusals } = report;
  const sum = refusals?.counts.reduce((all, one) => all + one.count, refusals.others) ?? 0;
  return {
    podId,
    state: report.isSilent ? "silent" : stateOf(report, version),
    reason: report.refused?.reason,
    generation: toJsonMs(generation),
    version: toJsonMs(report.version),
    stalenessMs: toJsonMs(report.stalenessMs),
    freshness: freshnessOf(report, readOnStale(on_stale)),
    lastSeenAt: report.lastSeenMs,
    release: release || undefined,
    region: region || undefined,
    refused: Math.min(sum, Number.MAX_SAFE_INTEGER),
  };
}
