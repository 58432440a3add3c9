import * as z from "zod";
import { LATENCY_ERRORS, readLatencies } from "../../domain/analytics/latencies.ts";
import { keySpacesOf } from "../../domain/analytics/scope.ts";
import { onApi } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";

const STEP_MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const;

const instant = (what: string, example: number) =>
  z
    .int()
    .min(0)
    .max(8_640_000_000_000_000)
    .describe(what)
    .meta({ examples: [example] });
const id = (what: string, example: string) =>
  z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe(what)
    .meta({ examples: [example] });

const Body = z.strictObject({
  from: instant(
    "Start of the range, Unix ms. Verifications older than the retention are not included.",
    1_767_222_000_000,
  ),
  to: instant("Exclusive end of the range, Unix ms.", 1_767_225_600_000),
  step: z
    .enum(["minute", "hour", "day"])
    .describe("Length of the time steps, in UTC; each step is a row of the result."),
  keySpaceId: id("Counts only verifications of keys in this key space, that is, of one API.", "ks_2bCd4Ef6Gh8Jk1Mn"),
  keyId: id("Counts only verifications of this key.", "key_4fGh7Jk2LmN8pQrS"),
  externalId: id("Counts only verifications of this owner's keys.", "user_123"),
});
type Body = z.output<typeof Body>;

const ms = (what: string, example: number) =>
  z
    .number()
    .describe(`${what}, ms.`)
    .meta({ examples: [example] });

const Data = z
  .array(
    z.strictObject({
      time: z
        .int()
        .describe("Start of the time step, Unix ms.")
        .meta({ examples: [1_767_222_000_000] }),
      count: z
        .int()
        .describe("Number of verifications in the time step.")
        .meta({ examples: [214] }),
      p50: ms("Median duration", 0.4),
      p95: ms("95th percentile of the duration", 1.2),
      p99: ms("99th percentile of the duration", 3.5),
    }),
  )
  .describe("Time steps with verifications, oldest first.");
type Data = z.input<typeof Data>;

const required = { readAnalytics: onApi("read_analytics") };

export const getLatencies = defineProcedure({
  path: "admin.getLatencies",
  effect: "read",
  summary: "Read how long verifications took",
  description:
    "Returns quantiles of the time that a gate or the API took to decide, per minute, hour or day, which `analytics.getVerifications` does not provide. Reads individual events, and counts against the quota of usage queries.",
  permissions: required,
  errors: [...LATENCY_ERRORS],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  const { body, caller, deps } = call;
  const ids = call.idsHeld(required.readAnalytics);
  if (ids.length === 0) call.require(required.readAnalytics);
  const { workspaceId } = caller;
  const { from, to, step, keySpaceId, keyId, externalId } = body;
  const rows = await readLatencies(deps, {
    workspaceId,
    within: () => keySpacesOf(deps.db, { workspaceId, ids }),
    keySpaceId,
    keyId,
    externalId,
    fromMs: from,
    toMs: to,
    stepMs: STEP_MS[step],
  });
  return rows.map(({ timeMs, count, p50, p95, p99 }) => ({ time: timeMs, count, p50, p95, p99 }));
}
