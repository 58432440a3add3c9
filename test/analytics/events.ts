import { utcDate } from "../../core/utc-date.ts";
import type { RatelimitEvent, UsageEvent, VerificationEvent } from "../../edge/events/contract.ts";

/*
 * The same 30,000 events each time, of three workspaces, over a month with a leap day: with values that are awkward for SQL, for JSON and for
 * rounding, and times on the edges of buckets. Latencies are multiples of 1/8, so that their sum is exact in any order.
 */

export const MAIN = "ws_main";
export const SECOND = "ws_ünï'x\\";
const OTHERS = ["ws_other", SECOND] as const;

/** The clock of every query. */
export const NOW_MS = Date.parse("2024-03-02T10:30:00.500Z");
/** What is older is stored, and not seen. */
export const KEPT_DAYS = 30;
export const VISIBLE_FROM_MS = NOW_MS - KEPT_DAYS * 86_400_000;
const FIRST_MS = Date.parse("2024-01-30T22:00:00Z");

/** The main workspace gets more than 8,192 verifications. Above that number, ClickHouse computes quantiles from a sample. */
const COUNT = 30_000;

/** Mulberry32: a small generator whose sequence its seed fixes. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const EXTERNAL_IDS = [
  "",
  "",
  "",
  "user_1",
  "user_2",
  "User_2",
  "USER",
  "o'brien",
  'say "hi"',
  "back\\slash",
  "tab\there",
  " blanks ",
  "Ünïcode 名前 🎉",
  "éclair",
  "zebra",
  "100%",
  "under_score",
  '{"plan":"pro","seats":5,"deep":{"a":[1,2]},"on":true,"none":null}',
  '{"plan":"free \\u00fc","seats":2.5}',
  "{broken",
  "[1,2]",
  "12345",
  "-7",
  "3.25",
] as const;

const TAGS = [
  "path=/v1/a",
  "path=/v1/b",
  "method=GET",
  "method=POST",
  "a,b",
  "it's",
  'say "x"',
  "ü",
  "",
  "NULL",
  "日本",
  "{x}",
  "back\\",
  "b",
  "B",
  "10",
  "9",
] as const;

const OUTCOMES = [
  "VALID",
  "VALID",
  "VALID",
  "VALID",
  "VALID",
  "RATE_LIMITED",
  "USAGE_EXCEEDED",
  "DISABLED",
  "EXPIRED",
  "FORBIDDEN",
  "INSUFFICIENT_PERMISSIONS",
] as const;

const REGIONS = ["", "eu-west-1", "us-east-1", "ap-south-1"] as const;
const LIMITS = [10, 100, 1_000_000_000_000_000] as const;

type Random = () => number;
const pick = <T>(random: Random, from: readonly T[]): T => {
  const found = from[Math.floor(random() * from.length)];
  if (found === undefined) throw new Error("nothing to pick from");
  return found;
};

/** One in eight on the edge of a bucket, or a millisecond before it. */
function aTime(random: Random): number {
  const ms = FIRST_MS + Math.floor(random() * (NOW_MS - FIRST_MS));
  const kind = Math.floor(random() * 48);
  const edge = [60_000, 3_600_000, 86_400_000][kind % 3] ?? 1;
  if (kind >= 6) return ms;
  return Math.max(FIRST_MS, Math.floor(ms / edge) * edge - (kind < 3 ? 0 : 1));
}

const aWorkspace = (random: Random): string => {
  const at = random();
  return at < 0.6 ? MAIN : OTHERS[at < 0.8 ? 0 : 1];
};

function tagsOf(random: Random): string[] {
  const at = random();
  const count = at < 0.3 ? 0 : at < 0.95 ? 1 + Math.floor(random() * 4) : 20;
  return Array.from({ length: count }, () => pick(random, TAGS));
}

function creditsOf(random: Random, index: number): number {
  // Their sum is beyond 2^53.
  if (index % 2_000 === 0) return 1_125_899_906_842_597;
  const at = random();
  return at < 0.5 ? 0 : at < 0.9 ? 1 : Math.floor(random() * 1_000);
}

function verification(random: Random, index: number): VerificationEvent {
  const workspaceId = aWorkspace(random);
  const key = Math.floor(random() * random() * 120);
  const api = key % 3;
  const externalId = EXTERNAL_IDS[key % EXTERNAL_IDS.length] ?? "";
  return {
    type: "verification",
    id: `ev_${index.toString(36)}`,
    requestId: `req_${(index * 7919).toString(36)}`,
    timeMs: aTime(random),
    workspaceId,
    keySpaceId: `ks_${api}`,
    apiId: `api_${api}`,
    keyId: `key_${key}`,
    ...(externalId === "" ? {} : { identityId: `id_${key}`, externalId }),
    outcome: pick(random, OUTCOMES),
    tags: tagsOf(random),
    region: pick(random, REGIONS),
    source: random() < 0.5 ? "api" : "sidecar",
    ...(random() < 0.3 ? { appId: `policy_${Math.floor(random() * 3)}` } : {}),
    spentCredits: creditsOf(random, index),
    latencyMs: Math.floor(random() * 80) / 8,
  };
}

function ratelimit(random: Random, index: number): RatelimitEvent {
  const timeMs = aTime(random);
  const limit = pick(random, LIMITS);
  const passed = random() < 0.8;
  return {
    type: "ratelimit",
    id: `ev_${index.toString(36)}`,
    requestId: `req_${(index * 7919).toString(36)}`,
    timeMs,
    workspaceId: aWorkspace(random),
    namespaceId: `rl_${Math.floor(random() * 4)}`,
    identifier: pick(random, EXTERNAL_IDS) || `ip_${Math.floor(random() * 50)}`,
    passed,
    latencyMs: Math.floor(random() * random() * 8_000) / 8,
    ...(random() < 0.1 ? { overrideId: `ov_${Math.floor(random() * 5)}` } : {}),
    limit,
    remaining: passed ? Math.floor(random() * limit) : 0,
    resetMs: Math.floor(timeMs / 60_000 + 1) * 60_000,
    cost: pick(random, [0, 1, 1, 1, 5]),
  };
}

export function corpusEvents(): UsageEvent[] {
  const random = seeded(20_240_229);
  return Array.from({ length: COUNT }, (_, index) =>
    random() < 0.6 ? verification(random, index) : ratelimit(random, index),
  );
}

/** By UTC day, then by workspace: ingestion takes events of one workspace that are not older than a day. */
export function byDayAndWorkspace(events: readonly UsageEvent[]): Map<string, Map<string, UsageEvent[]>> {
  const days = new Map<string, Map<string, UsageEvent[]>>();
  for (const event of events) {
    const day = utcDate(event.timeMs);
    const workspaces = days.get(day) ?? new Map<string, UsageEvent[]>();
    const own = workspaces.get(event.workspaceId) ?? [];
    days.set(day, workspaces.set(event.workspaceId, own));
    own.push(event);
  }
  return new Map([...days].sort(([one], [other]) => (one < other ? -1 : 1)));
}
