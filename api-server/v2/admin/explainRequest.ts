import * as z from "zod";
import { PublicError } from "../../../core/errors.ts";
import { DAY_MS } from "../../../core/utc-date.ts";
import { listAudit } from "../../db/audit.ts";
import { runQuery } from "../../domain/analytics/run-query.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineProcedure } from "../../procedure.ts";
import { unixMs } from "../schemas.ts";
import { AuditRowOut, toAuditRowOut } from "./listAudit.ts";

/** Maximum number of events in the response. A request usually has one; a call with several limits has more. */
const EVENTS_MAX = 50;
/**
 * Maximum time range of the scan of raw events. A scan is needed because raw events have no index by request id: such an index would be
 * written for each event, but rarely used.
 */
const RANGE_MS_MAX = 604_800_000;

const Instant = z
  .int()
  .min(0)
  .meta({ examples: [1_767_225_600_000] });

const Body = z.strictObject({
  requestId: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,128}$/)
    .describe("Request id from `meta` of an API response, or from the header `X-Request-Id` of a gate's response.")
    .meta({ examples: ["req_9Tz5Bv2Nm7Qw4Xy1"] }),
  since: Instant.optional().describe("Earliest time of the request, Unix ms. Default: a day before `until`."),
  until: Instant.optional().describe(
    "Latest time of the request, Unix ms, at most 7 days after `since`. Default: now.",
  ),
});
type Body = z.output<typeof Body>;

const text = (description: string, example: string) =>
  z
    .string()
    .describe(description)
    .meta({ examples: [example] });

const Verification = z.strictObject({
  time: unixMs("When it was decided, Unix ms."),
  keyId: text("Id of the verified key.", "key_4fGh7Jk2LmN8pQrS"),
  externalId: text("External id of the key's owner; empty if the key has no owner.", "user_123"),
  outcome: text("Code of the verification.", "RATE_LIMITED"),
  source: text("Component that verified the key: `api`, or `sidecar` for a gate.", "sidecar"),
  policyId: text("Policy of the gate; empty for a verification by the API.", "pol_6e5bd26a08226eff56e6d06e59fb97d8"),
  region: text("Region of the verification; empty if unknown.", "eu-1"),
  tags: z.array(text("Tag of the verification.", "path=/v1/orders")).describe("Tags of the verification."),
  spentCredits: z
    .int()
    .describe("Credits that the verification spent.")
    .meta({ examples: [1] }),
});

const RatelimitCheck = z.strictObject({
  time: unixMs("When it was decided, Unix ms."),
  namespaceId: text("Id of the rate-limit namespace.", "rlns_3aBc5De7Fg9Hj1Kl"),
  identifier: text("Identifier whose requests were counted.", "user_123"),
  passed: z.boolean().describe("Whether the request was within the limit."),
  limit: z
    .int()
    .describe("Units per window.")
    .meta({ examples: [100] }),
  remaining: z
    .int()
    .describe("Units that remained in the window after this check.")
    .meta({ examples: [0] }),
});

const Data = z.strictObject({
  since: unixMs("Start of the time range that was searched, Unix ms."),
  until: unixMs("End of the time range that was searched, Unix ms."),
  verifications: z.array(Verification).describe("Verifications of this request, oldest first."),
  ratelimits: z.array(RatelimitCheck).describe("Rate-limit checks of this request, oldest first."),
  changes: z.array(AuditRowOut).describe("Changes that this request made, newest first."),
  problem: z
    .string()
    .optional()
    .describe("Reason why the events of the request could not be read.")
    .meta({ examples: ["The analytics store does not respond; try again later."] }),
});
type Data = z.input<typeof Data>;

const required = { explain: onWorkspace("explain") };

export const explainRequest = defineProcedure({
  path: "admin.explainRequest",
  effect: "read",
  summary: "Read the events and changes of a request",
  description:
    "Returns the request's verifications, its rate-limit checks and its changes. Events arrive a few seconds after the request. The search covers a limited time range, and counts against the quota of analytics queries.",
  permissions: required,
  errors: ["request_timeout"],
  addition: true,
  body: Body,
  data: Data,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Data> {
  call.require(required.explain);
  const { body, caller, deps } = call;
  const { requestId, until = deps.nowMs() } = body;
  const since = body.since ?? Math.max(0, until - DAY_MS);
  if (until < since || until - since > RANGE_MS_MAX) {
    throw new PublicError("invalid_input", "The time range is invalid.", {
      errors: [{ location: "body.since", message: "expected a time up to 7 days before body.until" }],
    });
  }
  const changes = await readBriefly(deps, "A shorter time range is faster.", (db) =>
    listAudit(db, { workspaceId: caller.workspaceId, sinceMs: since, untilMs: until, requestId, rowsMax: EVENTS_MAX }),
  );
  const found = { since, until, changes: changes.map(toAuditRowOut) };
  try {
    // Runs the queries one after the other, so that one person does not occupy two concurrency slots of the analytics store.
    const verifications = await findVerifications(call, { since, until });
    return { ...found, verifications, ratelimits: await findRatelimits(call, { since, until }) };
  } catch (error) {
    if (!(error instanceof PublicError)) throw error;
    return { ...found, verifications: [], ratelimits: [], problem: error.message };
  }
}

interface Range {
  readonly since: number;
  readonly until: number;
}

// Returns a SQL condition. The id needs no escaping, because its schema excludes characters that could end a SQL string.
const condition = (requestId: string, { since, until }: Range): string =>
  `WHERE request_id = '${requestId}' AND time >= ${since} AND time <= ${until} ORDER BY time LIMIT ${EVENTS_MAX}`;

async function ask(
  call: Call<Body>,
  of: "verifications" | "ratelimits",
  query: string,
): Promise<Record<string, unknown>[]> {
  const { rowsJson } = await runQuery(call.deps, {
    workspaceId: call.caller.workspaceId,
    of,
    text: query,
    within: async () => undefined,
    signal: call.untilDisconnected(),
  });
  return JSON.parse(rowsJson) as Record<string, unknown>[];
}

async function findVerifications(call: Call<Body>, range: Range): Promise<z.input<typeof Verification>[]> {
  const columns = "time, key_id, external_id, outcome, tags, source, app_id, region, spent_credits";
  const query = `SELECT ${columns} FROM key_verifications_v1 ${condition(call.body.requestId, range)}`;
  return (await ask(call, "verifications", query)).map((row) => ({
    time: Number(row.time),
    keyId: String(row.key_id),
    externalId: String(row.external_id),
    outcome: String(row.outcome),
    source: String(row.source),
    policyId: String(row.app_id),
    region: String(row.region),
    tags: (row.tags as unknown[]).map(String),
    spentCredits: Number(row.spent_credits),
  }));
}

async function findRatelimits(call: Call<Body>, range: Range): Promise<z.input<typeof RatelimitCheck>[]> {
  const columns = "time, namespace_id, identifier, passed, `limit`, remaining";
  const query = `SELECT ${columns} FROM ratelimits_v1 ${condition(call.body.requestId, range)}`;
  return (await ask(call, "ratelimits", query)).map((row) => ({
    time: Number(row.time),
    namespaceId: String(row.namespace_id),
    identifier: String(row.identifier),
    passed: row.passed === true,
    limit: Number(row.limit),
    remaining: Number(row.remaining),
  }));
}
