import * as z from "zod";
import { usageStateOf } from "../../domain/analytics/usage-state.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const Body = z.strictObject({});
type Body = z.output<typeof Body>;

const days = (what: string, example: number) =>
  z
    .int()
    .describe(`Retention of ${what}, in days.`)
    .meta({ examples: [example] });
const limit = (what: string, example: number) =>
  z
    .int()
    .describe(what)
    .meta({ examples: [example] });

const Data = z.strictObject({
  enabled: z.boolean().describe("Whether usage queries are enabled. Usage is counted in either case."),
  now: z
    .int()
    .describe("Current time of the server, Unix ms.")
    .meta({ examples: [1_767_225_600_000] }),
  countedUntil: z
    .int()
    .optional()
    .describe(
      "Time up to which all events are in the count tables, Unix ms. Omitted if it is unknown because a database does not respond.",
    )
    .meta({ examples: [1_767_225_598_000] }),
  retentionDays: z
    .strictObject({
      verifications: days("verifications", 30),
      ratelimits: z
        .strictObject({
          raw: days("checks of rate limits", 30),
          minute: days("their counts per minute", 7),
          hour: days("their counts per hour", 30),
          day: days("their counts per day", 100),
          month: days("their counts per month", 1095),
        })
        .describe("Retention of rate-limit decisions."),
    })
    .describe("Retention of usage data."),
  limits: z
    .strictObject({
      maxRows: limit("Rows of a result; further rows are truncated.", 10_000),
      timeoutMs: limit("Run time of a query, ms.", 10_000),
      maxMemoryBytes: limit("Memory of a query, bytes.", 1_000_000_000),
      maxResponseBytes: limit("Size of a response, bytes.", 4_194_304),
      queriesPerHour: limit("Queries per hour.", 1_000),
      runMsPerHour: limit("Total run time of all queries per hour, ms.", 1_800_000),
    })
    .describe("Limits of the usage queries of the workspace (api-v2.md section 18.3)."),
});
type Data = z.input<typeof Data>;

const required = { readWorkspace: onWorkspace("read_workspace") };

export const getUsageState = defineProcedure({
  path: "admin.getUsageState",
  effect: "read",
  summary: "Read how up to date usage data is, and the limits of usage queries",
  description:
    "Returns the retention and the limits of the workspace's usage queries, and the time up to which its events are in the count tables. Unlike a usage query, this call counts against no quota.",
  permissions: required,
  errors: [],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { caller, deps } = call;
  call.require(required.readWorkspace);
  const { enabled, countedUntilMs, retention, limits } = await usageStateOf(deps, caller.workspaceId);
  const { verifications, ratelimits } = retention;
  return {
    enabled,
    now: deps.nowMs(),
    ...(countedUntilMs === undefined ? {} : { countedUntil: Math.floor(countedUntilMs) }),
    retentionDays: { verifications, ratelimits: { ...ratelimits } },
    limits: {
      maxRows: limits.rowsMax,
      timeoutMs: limits.timeoutMs,
      maxMemoryBytes: limits.memoryBytesMax,
      maxResponseBytes: limits.answerBytesMax,
      queriesPerHour: limits.queriesPerHour,
      runMsPerHour: limits.runMsPerHour,
    },
  };
}
