import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import { seededKeyId } from "./seed.ts";

/*
 * Which verifications are seeded: event g of all (from 0) follows from g by arithmetic that is the same in every SQL, so that two stores can be
 * filled with the same ones and their answers compared. Keys are used unevenly: the first ones most. A key always has the same identity
 * and tags, so that it has a row per bucket and outcome.
 */

export interface Usage {
  readonly workspaceId: string;
  readonly apiId: string;
  readonly keys: number;
  /** Of each day; they lie evenly in it. */
  readonly eventsPerDay: number;
  /** Unix ms of whole days (UTC), one after the other. */
  readonly days: readonly number[];
}

/** Whole days before today, so that each lies in one partition. */
export const wholeDaysBefore = (nowMs: number, count: number): number[] =>
  Array.from({ length: count }, (_, n) => Date.parse(utcDate(nowMs)) - (count - n) * DAY_MS);

export const OUTCOMES = ["VALID", "RATE_LIMITED", "USAGE_EXCEEDED"] as const;

/** What is the same for all events of a key with one outcome; its `kind` is its place among all of them. */
export interface UsageKind {
  readonly kind: number;
  readonly key_id: string;
  readonly identity_id: string;
  readonly external_id: string;
  readonly outcome: string;
  readonly tags: readonly string[];
}

/** Common to all kinds. */
export const usageConstants = ({ apiId }: Pick<Usage, "apiId">) =>
  ({
    key_space_id: `ks_${apiId}`,
    api_id: apiId,
    source: "sidecar",
    app_id: "pol_1",
    region: "eu-central-1",
  }) as const;

export const usageKinds = ({ apiId, keys }: Usage): UsageKind[] =>
  Array.from({ length: keys }, (_, n) => n).flatMap((n) =>
    OUTCOMES.map((outcome, at) => ({
      kind: n * OUTCOMES.length + at,
      key_id: seededKeyId(apiId, n),
      identity_id: `id_${n}`,
      external_id: `user_${n}`,
      outcome,
      tags: n % 4 === 0 ? ["path=/orders"] : [],
    })),
  );

/** The kind of event `g`, an expression of 64-bit integers, given the names of two functions that the stores call differently. */
export function kindSql(g: string, keys: number, { and, div }: { and: Binary; div: Binary }): string {
  // The upper halves of two multiples modulo 2^32: numbers from 0 to 65535 that look random, and their product prefers small ones.
  const scattered = (factor: number) => div(and(`(${g} * ${factor})`, "4294967295"), "65536");
  const key = div(`(${scattered(2_654_435_761)} * ${scattered(2_246_822_519)} * ${keys})`, "4294967296");
  return `(${key} * ${OUTCOMES.length} + case when ${g} % 20 = 0 then 1 when ${g} % 33 = 0 then 2 else 0 end)`;
}

type Binary = (a: string, b: string) => string;
