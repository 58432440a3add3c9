import * as z from "zod";
import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runReadingScript, runScript } from "../redis/script.ts";
import {
  POD_REPORT_MAX_AGE_MS,
  POD_SILENT_MAX_AGE_MS,
  type PodReport,
  type PodReportSummary,
  type PodReports,
  type PolicyRef,
  REPORT_BYTES_MAX,
  RULE_COUNTS_MAX,
  toReason,
} from "./contract.ts";

/** Lifetime of a hash of reports. It removes reports that are never listed; `list` removes expired reports one by one. */
const KEPT_MS = POD_SILENT_MAX_AGE_MS;
const POD_ID_BYTES_MAX = 512;

/**
 * Stores a report. It is a script so that the report's timestamp is store time: the clocks of pods are not trusted. KEYS: the reports of a
 * policy. ARGV: the pod's id, its report as JSON, the lifetime of the hash in ms.
 */
export const REPORT = defineScript(
  { keys: 1, args: 3, argBytes: REPORT_BYTES_MAX },
  `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`,
);

/**
 * Records a pod and counts the pods of a policy. The pods are stored apart from the reports, so that counting thousands of pods does not
 * read their reports. KEYS: a sorted set of pods, by last-seen time. ARGV: the pod's id, the time for which a pod counts in ms. Reply: the
 * number of pods.
 */
export const COUNT_ALIVE = defineScript(
  { keys: 1, args: 2, argBytes: POD_ID_BYTES_MAX },
  `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
local gone = redis.call('ZCOUNT', KEYS[1], '-inf', now - tonumber(ARGV[2]))
local count = redis.call('ZCARD', KEYS[1]) - gone
-- A call removes a bounded number: a gate may have added millions.
if gone > 0 then redis.call('ZREMRANGEBYRANK', KEYS[1], '0', math.min(gone, 1000) - 1) end
return count
`,
);

/** Maximum number of listed pods of one policy. Needed because a compromised pod can write under any name. */
const PODS_MAX = 10_000;

/** Maximum bytes of listed reports of a policy: 10,000 reports of 800 bytes. A genuine report has a few hundred bytes. */
const LISTED_BYTES_MAX = 8 * 1024 * 1024;
/** Maximum bytes of a hash of reports. A larger hash cannot be genuine, so it is removed; the pods report again within seconds. */
const HASH_BYTES_MAX = 32 * 1024 * 1024;
const FIELDS_MAX = 2 * PODS_MAX;

/**
 * Lists reports. It is a script so that overlong values are not fetched: with them, one pod could fill the memory of Redis and of the
 * api-server. KEYS: the reports of a policy. ARGV: the maximum pods, the maximum bytes of a name, of a report, and of all reports, the
 * maximum fields and bytes of the hash; then the only pod that may report there, if any. Reply: alternating names and reports; nil for a
 * hash that is too large to read.
 */
export const LIST_REPORTS = defineScript(
  { keys: 1, args: 7, argBytes: POD_ID_BYTES_MAX },
  `
local listed = {}
local fields = redis.pcall('HLEN', KEYS[1])
if type(fields) == 'table' then
  if string.sub(fields.err, 1, 9) == 'WRONGTYPE' then return listed end
  return fields
end
local pods = { ARGV[7] }
if ARGV[7] == nil then
  if fields > tonumber(ARGV[5]) then return false end
  -- Of all fields: names are as long as their writer likes, and are fetched below.
  local bytes = redis.pcall('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', '0')
  if type(bytes) == 'number' and bytes > tonumber(ARGV[6]) then return false end
  pods = redis.call('HKEYS', KEYS[1])
end
local left = tonumber(ARGV[4])
for _, pod in ipairs(pods) do
  if #listed >= 2 * tonumber(ARGV[1]) then break end
  local length = #pod <= tonumber(ARGV[2]) and redis.call('HSTRLEN', KEYS[1], pod) or 0
  if length > 0 and length <= tonumber(ARGV[3]) and length <= left then
    listed[#listed + 1] = pod
    listed[#listed + 1] = redis.call('HGET', KEYS[1], pod)
    left = left - length
  end
end
return listed
`,
);

const Count = z.int().min(0);

/** Schema that omits an unreadable part of a report and keeps the rest. */
const StoredRefusals = z
  .object({
    sinceMs: Count,
    mode: z.enum(["Enforce", "Audit"]),
    counts: z
      .array(z.object({ rule: z.int().min(-2).max(1_000), code: z.string().regex(/^[A-Z_]{1,40}$/), count: Count }))
      .transform((counts) => counts.slice(0, RULE_COUNTS_MAX)),
    others: Count.default(0),
  })
  .optional()
  .catch(undefined);

const StoredOverAdmission = z.object({ units: Count, percent: Count, lastMs: Count }).optional().catch(undefined);

const Word = z
  .string()
  .regex(/^[A-Za-z0-9._+-]{0,64}$/)
  .optional()
  .catch(undefined);

/**
 * A pod's report. Staleness may be null, because JSON has no infinity. A compromised pod can write anything, and other versions write other
 * members, so the schema ignores unknown members.
 */
export const StoredPodReport = z.object({
  generation: z.number(),
  version: z.number(),
  stalenessMs: z.number().nullable().default(null),
  refused: z.object({ version: z.number().default(0), reason: z.string().transform(toReason) }).optional(),
  refusals: StoredRefusals,
  overAdmitted: StoredOverAdmission,
  upstreamPort: z.int().min(1).max(65_535).optional().catch(undefined),
  release: Word,
  region: Word,
});

export class RedisPodReports implements PodReports {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;

  readonly #isOwn: boolean;

  /**
   * The caller owns the connection and closes it. With `isOwn`, the report of this pod is stored under a separate key, because the pod's
   * Redis user cannot write to others. Lists contain all reports.
   */
  constructor(client: RedisClient, keys: RedisKeys, { isOwn = false }: { isOwn?: boolean } = {}) {
    this.#client = client;
    this.#keys = keys;
    this.#isOwn = isOwn;
  }

  async report(report: PodReport): Promise<void> {
    const { podId, generation, version, stalenessMs, refused, refusals, overAdmitted, upstreamPort, release, region } =
      report;
    const stored = {
      generation,
      version,
      stalenessMs: Number.isFinite(stalenessMs) ? stalenessMs : null,
      refused,
      refusals: refusals && { ...refusals, counts: [...refusals.counts] },
      overAdmitted,
      upstreamPort,
      release,
      region,
    } satisfies z.input<typeof StoredPodReport>;
    const key = this.#keyOf(report);
    const send = () => runScript(this.#client, REPORT, 1, [key, podId, JSON.stringify(stored), KEPT_MS]);
    try {
      await send();
    } catch (error) {
      if (!isWrongType(error)) throw error;
      // Other pods may write any value under the key. A value that is not a hash counts as no reports.
      await this.#client.unlink(key);
      await send();
    }
  }

  async countAlive({
    workspaceId,
    policyId,
    podId,
  }: PolicyRef & { readonly podId: string }): Promise<number | undefined> {
    const key = this.#keys.podsAlive(workspaceId, policyId);
    try {
      return Number(await runScript(this.#client, COUNT_ALIVE, 1, [key, podId, POD_REPORT_MAX_AGE_MS]));
    } catch (error) {
      if (isWrongType(error)) await this.#client.unlink(key);
      // The Redis user was created with older ACL rules and lacks this permission.
      if (error instanceof Error && /NOPERM|not allowed|can't access/i.test(error.message)) return undefined;
      throw error;
    }
  }

  async list(ref: PolicyRef): Promise<PodReportSummary[]> {
    const [reports = []] = await this.listEach([ref]);
    return reports;
  }

  /** All commands are sent before the first reply is awaited. Each of them names a single key, so that a cluster accepts it too. */
  async listEach(refs: readonly PolicyRef[]): Promise<PodReportSummary[][]> {
    const [time, issued, ...all] = await Promise.all([
      this.#client.time(),
      this.#listOwn(refs),
      ...refs.map(({ workspaceId, policyId }) => this.#listIn(this.#keys.pods(workspaceId, policyId))),
    ]);
    const nowMs = Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000);
    const listed = refs.map((ref, i) => ({ ref, ...readReports(ref, { ...all[i], ...issued[i] }, nowMs) }));
    await Promise.all(
      listed.map(async ({ ref: { workspaceId, policyId }, past }) => {
        if (past.length > 0) await this.#client.hdel(this.#keys.pods(workspaceId, policyId), ...past);
      }),
    );
    return listed.map(({ reports }) => reports);
  }

  /**
   * Reads the reports of pods that have Redis users of their own. Only names that the control plane has recorded are read, so pods cannot
   * add other names.
   */
  async #listOwn(refs: readonly PolicyRef[]): Promise<Record<string, string>[]> {
    const names = await Promise.all(
      refs.map(({ workspaceId, policyId }) =>
        this.#client.zrange(this.#keys.podsIssued(workspaceId, policyId), "0", "-1"),
      ),
    );
    return await Promise.all(
      refs.map(async ({ workspaceId, policyId }, i) => {
        const read = (podId: string) => this.#listIn(this.#keys.podsOwn(workspaceId, policyId, podId), podId);
        return Object.assign({}, ...(await Promise.all((names[i] ?? []).map(read))));
      }),
    );
  }

  /** Lists the reports under a key. `only` is the pod that owns the key; other names under the key are not read. */
  async #listIn(key: string, ...only: readonly string[]): Promise<Record<string, string>> {
    const bounds = [PODS_MAX, POD_ID_BYTES_MAX, REPORT_BYTES_MAX, LISTED_BYTES_MAX, FIELDS_MAX, HASH_BYTES_MAX];
    const listed = (await runReadingScript(this.#client, LIST_REPORTS, 1, [key, ...bounds, ...only])) as
      | string[]
      | null;
    if (listed === null) {
      await this.#client.unlink(key);
      return {};
    }
    const entries = listed.flatMap((name, i) => (i % 2 === 0 ? [[name, listed[i + 1] ?? ""] as const] : []));
    return Object.fromEntries(entries);
  }

  #keyOf({ workspaceId, policyId, podId }: PolicyRef & { readonly podId: string }): string {
    return this.#isOwn ? this.#keys.podsOwn(workspaceId, policyId, podId) : this.#keys.pods(workspaceId, policyId);
  }

  async remove(ref: PolicyRef & { readonly podId: string }): Promise<void> {
    await this.#client.hdel(this.#keyOf(ref), ref.podId);
  }

  async close(): Promise<void> {}
}

const isWrongType = (error: unknown): boolean => error instanceof Error && error.message.includes("WRONGTYPE");

/** Returns the reports, and in `past` the pods whose reports are unreadable or old enough to be removed. */
function readReports(
  { workspaceId, policyId }: PolicyRef,
  fields: Readonly<Record<string, string>>,
  nowMs: number,
): { readonly reports: PodReportSummary[]; readonly past: readonly string[] } {
  const reports: PodReportSummary[] = [];
  const past: string[] = [];
  for (const [podId, text] of Object.entries(fields)) {
    const report = readReport(text);
    if (report === undefined || report.lastSeenMs < nowMs - KEPT_MS) {
      past.push(podId);
      continue;
    }
    const isSilent = report.lastSeenMs < nowMs - POD_REPORT_MAX_AGE_MS;
    reports.push({ workspaceId, policyId, podId, ...report, isSilent });
  }
  return { reports: reports.sort((a, b) => (a.podId < b.podId ? -1 : 1)), past };
}

function readReport(text: string) {
  const space = text.indexOf(" ");
  try {
    const { stalenessMs, refused, refusals, overAdmitted, upstreamPort, release, region, ...report } =
      StoredPodReport.parse(JSON.parse(text.slice(space + 1)));
    const lastSeenMs = Number(text.slice(0, space));
    return {
      ...report,
      stalenessMs: stalenessMs ?? Number.POSITIVE_INFINITY,
      ...(refused === undefined ? {} : { refused }),
      ...(refusals === undefined ? {} : { refusals }),
      ...(overAdmitted === undefined ? {} : { overAdmitted }),
      ...(upstreamPort === undefined ? {} : { upstreamPort }),
      ...(release === undefined ? {} : { release }),
      ...(region === undefined ? {} : { region }),
      lastSeenMs,
    };
  } catch {
    return undefined;
  }
}
