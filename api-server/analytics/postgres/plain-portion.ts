import { utcDate } from "../../../core/utc-date.ts";
import { copyField } from "../../store/copy-rows.ts";
import type { AcceptedTimes } from "../accepted-times.ts";

/*
 * Nearly every portion has only events that need no care: complete, of ordinary values and of accepted times. Its rows are made here,
 * for a COPY, and its counts with them: Postgres needs as long to parse an event's JSON as to store its row. What is not plain in
 * any way is left to the statement of `event-lines.ts`, which decides what is valid; the rules here are only narrower.
 */

export interface PlainPortion {
  readonly events: number;
  /** Rows of `COPY`, each ending in a line feed. */
  readonly verifications: string;
  readonly ratelimits: string;
  readonly groups: number;
  /** Array literals of the types `verification_group` and `ratelimit_group`. */
  readonly verificationGroups: string;
  readonly ratelimitGroups: string;
  /** When each key was last used, Unix ms, to the minute. */
  readonly lastUses: ReadonlyMap<string, number>;
}

const MINUTE_MS = 60_000;
const TEXT_MAX = 4096;
const ID_MAX = 256;

/** Returns undefined when any event is not plain. */
export function readPlainPortion(
  lines: string,
  { workspaceId, afterMs, beforeMs }: AcceptedTimes & { workspaceId: string },
): PlainPortion | undefined {
  const plain = new Plain(copyField(workspaceId));
  for (const line of lines.split("\n")) {
    let event: Readonly<Record<string, unknown>>;
    try {
      event = JSON.parse(line);
    } catch {
      return undefined;
    }
    const { timeMs } = event ?? {};
    if (!isCount(timeMs) || timeMs <= afterMs || timeMs >= beforeMs || event.workspaceId !== workspaceId)
      return undefined;
    if (!(event.type === "verification" ? plain.addVerification(event, timeMs) : plain.addRatelimit(event, timeMs))) {
      return undefined;
    }
  }
  return plain.portion();
}

type Given = Readonly<Record<string, unknown>>;

class Plain {
  readonly #workspaceId: string;
  readonly #ids = new Set<string>();
  readonly #verified = new Map<string, { head: string; tail: string; spent: number; count: number }>();
  readonly #limited = new Map<string, { head: string; tail: string; sums: [number, number, number, number] }>();
  readonly #lastUses = new Map<string, number>();
  #verifications = "";
  #ratelimits = "";

  constructor(workspaceId: string) {
    this.#workspaceId = workspaceId;
  }

  addVerification(given: Given, timeMs: number): boolean {
    const { id, requestId, keySpaceId, apiId, keyId, outcome, region, source, tags, spentCredits, latencyMs } = given;
    const { identityId = "", externalId = "", appId = "" } = given;
    if (!(isText(id, ID_MAX) && id !== "" && isText(keyId, ID_MAX) && isText(keySpaceId, ID_MAX))) return false;
    if (!(isText(requestId) && isText(apiId) && isText(outcome, 64) && isText(region) && isText(identityId)))
      return false;
    if (!(isText(externalId) && isText(appId) && (source === "api" || source === "sidecar"))) return false;
    if (!(Array.isArray(tags) && tags.every((tag) => isText(tag)) && isCount(spentCredits) && isLatency(latencyMs)))
      return false;
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const common = `${copyField(identityId)}\t${copyField(externalId)}\t${copyField(outcome)}\t${copyField(arrayOf(tags))}`;
    const of = `${copyField(keySpaceId)}\t${copyField(apiId)}\t${copyField(keyId)}`;
    const what = `${dayOf(timeMs)}\t${copyField(id)}\t${copyField(requestId)}\t${timeMs}\t${this.#workspaceId}\t${of}\t${common}`;
    this.#verifications += `${what}\t${source}\t${copyField(appId)}\t${copyField(region)}\t${spentCredits}\t${latencyMs}\n`;

    const minuteMs = timeMs - (timeMs % MINUTE_MS);
    if (minuteMs > (this.#lastUses.get(keyId) ?? 0)) this.#lastUses.set(keyId, minuteMs);
    const sorted = tags.length < 2 ? tags : tags.toSorted(byBytes);
    // No text has a U+0000, so what is joined by it is different when any of it is.
    const dims = [keySpaceId, keyId, identityId, externalId, outcome, source, appId, ...sorted];
    const place = `${minuteMs}\u0000${dims.join("\u0000")}`;
    const group = this.#verified.get(place);
    if (group === undefined) {
      const texts = dims.slice(0, 7).map(recordField).join(",");
      const tail = `${texts},${recordField(arrayOf(sorted))}`;
      this.#verified.set(place, { head: minuteOf(minuteMs), tail, spent: spentCredits, count: 1 });
    } else {
      group.spent = sum(group.spent, spentCredits);
      group.count += 1;
    }
    return true;
  }

  addRatelimit(given: Given, timeMs: number): boolean {
    const { type, id, requestId, namespaceId, identifier, passed, overrideId = "", latencyMs } = given;
    const { limit, remaining, resetMs, cost } = given;
    if (!(type === "ratelimit" && isText(id, ID_MAX) && id !== "" && isText(requestId) && isText(namespaceId)))
      return false;
    if (!(isText(identifier) && isText(overrideId) && typeof passed === "boolean" && isLatency(latencyMs)))
      return false;
    if (!(isCount(limit) && isCount(remaining) && isCount(resetMs) && isCount(cost))) return false;
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    const of = `${copyField(namespaceId)}\t${copyField(identifier)}\t${passed}\t${latencyMs}\t${copyField(overrideId)}`;
    const what = `${dayOf(timeMs)}\t${copyField(id)}\t${copyField(requestId)}\t${timeMs}\t${this.#workspaceId}\t${of}`;
    this.#ratelimits += `${what}\t${limit}\t${remaining}\t${resetMs}\t${cost}\n`;

    const minuteMs = timeMs - (timeMs % MINUTE_MS);
    const place = `${minuteMs}\u0000${namespaceId}\u0000${identifier}`;
    const before = this.#limited.get(place)?.sums ?? [0, 0, 0, 0];
    this.#limited.set(place, {
      head: minuteOf(minuteMs),
      tail: `${recordField(namespaceId)},${recordField(identifier)}`,
      sums: [
        before[0] + (passed ? 1 : 0),
        before[1] + 1,
        passed ? sum(before[2], cost) : before[2],
        sum(before[3], cost),
      ],
    });
    return true;
  }

  portion(): PlainPortion {
    const verified = [...this.#verified.values()].map(
      ({ head, tail, spent, count }) => `(${head},${spent},${count},${tail})`,
    );
    const limited = [...this.#limited.values()].map(({ head, tail, sums }) => `(${head},${sums.join(",")},${tail})`);
    return {
      events: this.#ids.size,
      verifications: this.#verifications,
      ratelimits: this.#ratelimits,
      groups: verified.length + limited.length,
      verificationGroups: arrayOf(verified),
      ratelimitGroups: arrayOf(limited),
      lastUses: this.#lastUses,
    };
  }
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isLatency = (value: unknown): value is number => typeof value === "number" && value >= 0;
const isText = (value: unknown, lengthMax = TEXT_MAX): value is string =>
  typeof value === "string" && value.length <= lengthMax && !value.includes("\u0000") && value.isWellFormed();

const sum = (a: number, b: number): number => Math.min(Number.MAX_SAFE_INTEGER, a + b);

/** As Postgres orders text by the collation C. */
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Quotes only what needs them: nearly no text does, and each level of quotes escapes those within. */
const inQuotes = (text: string, needed: RegExp): string => {
  if (text !== "" && !needed.test(text)) return text;
  return /["\\]/.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : `"${text}"`;
};

/** An array of texts, or of records. */
const arrayOf = (texts: readonly string[]): string => `{${texts.map((text) => inQuotes(text, ELEMENT)).join(",")}}`;
/** A word of these four letters is nothing, in any case of letters. */
const ELEMENT = /[\s,{}"\\]|^null$/i;

const recordField = (text: string): string => inQuotes(text, /[\s,()"\\]/);

const days = new Map<number, string>();
/** The UTC date. The few of a portion are remembered, because a text of a date costs more than all else. */
function dayOf(ms: number): string {
  const day = Math.floor(ms / 86_400_000);
  let text = days.get(day);
  if (text === undefined) {
    if (days.size > 100) days.clear();
    text = utcDate(ms);
    days.set(day, text);
  }
  return text;
}

const minutes = new Map<number, string>();
function minuteOf(ms: number): string {
  let text = minutes.get(ms);
  if (text === undefined) {
    if (minutes.size > 2_000) minutes.clear();
    text = `${new Date(ms).toISOString().slice(0, 16)}:00`;
    minutes.set(ms, text);
  }
  return text;
}
