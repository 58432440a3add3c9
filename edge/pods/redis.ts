import * as z from "zod";
import type { RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript } from "../redis/script.ts";
import {
  POD_REPORT_MAX_AGE_MS,
  type PodReport,
  type PodReports,
  type PolicyRef,
  type SeenPodReport,
  toReason,
} from "./contract.ts";

/** If nothing lists the reports, they expire with their hash; list() removes single expired ones. */
const KEPT_MS = 60_000;

/**
 * KEYS: the reports of a policy. ARGV: the pod's id, its report as JSON, how long the hash is kept (ms).
 * A script, because the time of the report is the store's: the clocks of pods are not trusted.
 */
export const REPORT = defineScript(`
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now) .. ' ' .. ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`);

/**
 * What a pod writes. JSON has no infinity, so that staleness may be null. A compromised pod can write anything, and one of another
 * release writes other members, so the schema ignores unknown ones.
 */
export const StoredPodReport = z.object({
  generation: z.number(),
  version: z.number(),
  stalenessMs: z.number().nullable().default(null),
  refused: z.object({ version: z.number().default(0), reason: z.string().transform(toReason) }).optional(),
});

export class RedisPodReports implements PodReports {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;

  readonly #isOwn: boolean;

  /**
   * The connection belongs to the caller, who also closes it. `isOwn`: reports are written where the user of one pod may write; they
   * are listed with all others.
   */
  constructor(client: RedisClient, keys: RedisKeys, { isOwn = false }: { isOwn?: boolean } = {}) {
    this.#client = client;
    this.#keys = keys;
    this.#isOwn = isOwn;
  }

  async report(report: PodReport): Promise<void> {
    const { podId, generation, version, stalenessMs, refused } = report;
    const stored: z.input<typeof StoredPodReport> = {
      generation,
      version,
      stalenessMs: Number.isFinite(stalenessMs) ? stalenessMs : null,
      ...(refused === undefined ? {} : { refused }),
    };
    const key = this.#keyOf(report);
    await runScript(this.#client, REPORT, 1, [key, podId, JSON.stringify(stored), KEPT_MS]);
  }

  async list(ref: PolicyRef): Promise<SeenPodReport[]> {
    const [reports = []] = await this.listEach([ref]);
    return reports;
  }

  /** The commands are written at once, before the first reply is awaited; each names one key, so that a cluster serves them too. */
  async listEach(refs: readonly PolicyRef[]): Promise<SeenPodReport[][]> {
    const [time, issued, ...all] = await Promise.all([
      this.#client.time(),
      this.#listOwn(refs),
      ...refs.map(({ workspaceId, policyId }) => this.#client.hgetall(this.#keys.pods(workspaceId, policyId))),
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

  /** The reports of pods with users of their own. Their names are those that the centre noted, so no pod can add others. */
  async #listOwn(refs: readonly PolicyRef[]): Promise<Record<string, string>[]> {
    const names = await Promise.all(
      refs.map(({ workspaceId, policyId }) =>
        this.#client.zrange(this.#keys.podsIssued(workspaceId, policyId), "0", "-1"),
      ),
    );
    return await Promise.all(
      refs.map(async ({ workspaceId, policyId }, i) => {
        const read = async (podId: string): Promise<[string, string][]> => {
          const text = await this.#client.hget(this.#keys.podsOwn(workspaceId, policyId, podId), podId);
          return text === null ? [] : [[podId, text]];
        };
        return Object.fromEntries((await Promise.all((names[i] ?? []).map(read))).flat());
      }),
    );
  }

  #keyOf({ workspaceId, policyId, podId }: PolicyRef & { readonly podId: string }): string {
    return this.#isOwn ? this.#keys.podsOwn(workspaceId, policyId, podId) : this.#keys.pods(workspaceId, policyId);
  }

  async remove(ref: PolicyRef & { readonly podId: string }): Promise<void> {
    await this.#client.hdel(this.#keyOf(ref), ref.podId);
  }

  async close(): Promise<void> {}
}

/** `past` are the pods whose reports are so old that they can be removed, or cannot be read. */
function readReports(
  { workspaceId, policyId }: PolicyRef,
  fields: Readonly<Record<string, string>>,
  nowMs: number,
): { readonly reports: SeenPodReport[]; readonly past: readonly string[] } {
  const reports: SeenPodReport[] = [];
  const past: string[] = [];
  for (const [podId, text] of Object.entries(fields)) {
    const report = readReport(text);
    if (report !== undefined && report.lastSeenMs >= nowMs - POD_REPORT_MAX_AGE_MS) {
      reports.push({ workspaceId, policyId, podId, ...report });
    } else if (report === undefined || report.lastSeenMs < nowMs - KEPT_MS) past.push(podId);
  }
  return { reports: reports.sort((a, b) => (a.podId < b.podId ? -1 : 1)), past };
}

function readReport(text: string) {
  const space = text.indexOf(" ");
  try {
    const { stalenessMs, refused, ...report } = StoredPodReport.parse(JSON.parse(text.slice(space + 1)));
    const lastSeenMs = Number(text.slice(0, space));
    return {
      ...report,
      stalenessMs: stalenessMs ?? Number.POSITIVE_INFINITY,
      ...(refused === undefined ? {} : { refused }),
      lastSeenMs,
    };
  } catch {
    return undefined;
  }
}
