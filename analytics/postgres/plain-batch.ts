import { utcDate } from "../../core/utc-date.ts";
import { copyField } from "../../postgres/copy-rows.ts";
import type { AcceptedTimes } from "../accepted-events.ts";

/*
 * Fast path for batches of plain events: complete, with ordinary values and accepted times. Nearly all batches qualify. This process
 * formats the rows and counts for a COPY, because parsing an event's JSON takes Postgres about as much time as storing its row. Other
 * batches use the statement of `event-lines.ts`, which defines the events that are valid; the rules here are stricter.
 */

export interface PlainBatch {
  readonly events: number;
  /** Rows for `COPY`, each ending in a line feed. */
  readonly verifications: string;
  readonly ratelimits: string;
  readonly groups: number;
  /** Array literals of the types `verification_group` and `ratelimit_group`. */
  readonly verificationGroups: string;
  readonly ratelimitGroups: string;
  /** Last use of each key, in Unix ms to the minute. */
  readonly lastUses: ReadonlyMap<string, number>;
}

const MINUTE_MS = 60_000;
const TEXT_MAX = 4096;
const ID_MAX = 256;

/** Converts a batch to rows; returns `undefined` if any event is not plain. Does not check for duplicates. */
export function readPlainBatch(
  lines: string,
  { workspaceId, afterMs, beforeMs }: AcceptedTimes & { workspaceId: string },
): PlainBatch | undefined {
  const plain = new Plain(workspaceId, { hasEscapes: lines.includes("\\") || !lines.isWellFormed() });
  for (const line of lines.split("\n")) {
    let event: Given;
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
  return plain.batch();
}

type Given = Readonly<Record<string, unknown>>;

interface VerificationSums {
  spent: number;
  count: number;
}

interface RatelimitSums {
  passed: number;
  total: number;
  passedTokens: number;
  totalTokens: number;
}

/** Sums by minute (Unix ms), and then by the other grouping columns, joined in record syntax. */
type ByMinute<Sums> = Map<number, Map<string, Sums>>;

class Plain {
  /**
   * Whether the batch's JSON may contain an escape. Nearly all batches have none. Without escapes, no string has a control character,
   * backslash, quote or lone surrogate, so most checks are unnecessary.
   */
  readonly #hasEscapes: boolean;
  readonly #workspaceId: string;
  readonly #verified: ByMinute<VerificationSums> = new Map();
  readonly #limited: ByMinute<RatelimitSums> = new Map();
  readonly #lastUses = new Map<string, number>();
  #events = 0;
  #verifications = "";
  #ratelimits = "";

  constructor(workspaceId: string, { hasEscapes }: { hasEscapes: boolean }) {
    this.#hasEscapes = hasEscapes;
    this.#workspaceId = this.#field(workspaceId);
  }

  addVerification(given: Given, timeMs: number): boolean {
    const { id, requestId, keySpaceId, apiId, keyId, outcome, region, source, tags, spentCredits, latencyMs } = given;
    const { identityId = "", externalId = "", appId = "" } = given;
    if (!(this.#isText(id, ID_MAX) && id !== "" && this.#isText(keyId, ID_MAX) && this.#isText(keySpaceId, ID_MAX)))
      return false;
    if (!(this.#isText(requestId) && this.#isText(apiId) && this.#isText(outcome, 64) && this.#isText(region)))
      return false;
    if (!(this.#isText(identityId) && this.#isText(externalId) && this.#isText(appId))) return false;
    if (!(source === "api" || source === "sidecar")) return false;
    if (!(this.#areTexts(tags) && isCount(spentCredits) && isLatency(latencyMs))) return false;
    const tagged = arrayOf(tags);
    const field = (text: string) => this.#field(text);
    this.#verifications +=
      `${dayOf(timeMs)}\t${field(id)}\t${field(requestId)}\t${timeMs}\t${this.#workspaceId}\t${field(keySpaceId)}\t` +
      `${field(apiId)}\t${field(keyId)}\t${field(identityId)}\t${field(externalId)}\t${field(outcome)}\t` +
      `${field(tagged)}\t${source}\t${field(appId)}\t${field(region)}\t${spentCredits}\t${latencyMs}\n`;
    this.#events += 1;

    const minuteMs = timeMs - (timeMs % MINUTE_MS);
    if (minuteMs > (this.#lastUses.get(keyId) ?? 0)) this.#lastUses.set(keyId, minuteMs);
    const sorted = tags.length < 2 ? tagged : arrayOf(tags.toSorted(byBytes));
    const dims =
      `${recordField(keySpaceId)},${recordField(keyId)},${recordField(identityId)},${recordField(externalId)},` +
      `${recordField(outcome)},${source},${recordField(appId)},${recordField(sorted)}`;
    const groups = groupsOf(this.#verified, minuteMs);
    const group = groups.get(dims);
    if (group === undefined) groups.set(dims, { spent: spentCredits, count: 1 });
    else {
      group.spent = sum(group.spent, spentCredits);
      group.count += 1;
    }
    return true;
  }

  addRatelimit(given: Given, timeMs: number): boolean {
    const { type, id, requestId, namespaceId, identifier, passed, overrideId = "", latencyMs } = given;
    const { limit, remaining, resetMs, cost } = given;
    if (!(type === "ratelimit" && this.#isText(id, ID_MAX) && id !== "" && this.#isText(requestId))) return false;
    if (!(this.#isText(namespaceId) && this.#isText(identifier) && this.#isText(overrideId))) return false;
    if (!(typeof passed === "boolean" && isLatency(latencyMs))) return false;
    if (!(isCount(limit) && isCount(remaining) && isCount(resetMs) && isCount(cost))) return false;
    const field = (text: string) => this.#field(text);
    this.#ratelimits +=
      `${dayOf(timeMs)}\t${field(id)}\t${field(requestId)}\t${timeMs}\t${this.#workspaceId}\t${field(namespaceId)}\t` +
      `${field(identifier)}\t${passed}\t${latencyMs}\t${field(overrideId)}\t${limit}\t${remaining}\t${resetMs}\t${cost}\n`;
    this.#events += 1;

    const groups = groupsOf(this.#limited, timeMs - (timeMs % MINUTE_MS));
    const dims = `${recordField(namespaceId)},${recordField(identifier)}`;
    let group = groups.get(dims);
    if (group === undefined) {
      group = { passed: 0, total: 0, passedTokens: 0, totalTokens: 0 };
      groups.set(dims, group);
    }
    group.total += 1;
    group.totalTokens = sum(group.totalTokens, cost);
    if (passed) {
      group.passed += 1;
      group.passedTokens = sum(group.passedTokens, cost);
    }
    return true;
  }

  batch(): PlainBatch {
    const verified = recordsOf(this.#verified, ({ spent, count }) => `${spent},${count}`);
    const limited = recordsOf(
      this.#limited,
      ({ passed, total, passedTokens, totalTokens }) => `${passed},${total},${passedTokens},${totalTokens}`,
    );
    return {
      events: this.#events,
      verifications: this.#verifications,
      ratelimits: this.#ratelimits,
      groups: verified.length + limited.length,
      verificationGroups: arrayOfRecords(verified),
      ratelimitGroups: arrayOfRecords(limited),
      lastUses: this.#lastUses,
    };
  }

  #isText(value: unknown, lengthMax = TEXT_MAX): value is string {
    if (typeof value !== "string" || value.length > lengthMax) return false;
    return !this.#hasEscapes || (!value.includes("\u0000") && value.isWellFormed());
  }

  #areTexts(value: unknown): value is string[] {
    return Array.isArray(value) && value.every((each) => this.#isText(each));
  }

  #field(text: string): string {
    return this.#hasEscapes ? copyField(text) : text;
  }
}

function groupsOf<Sums>(byMinute: ByMinute<Sums>, minuteMs: number): Map<string, Sums> {
  let groups = byMinute.get(minuteMs);
  if (groups === undefined) {
    groups = new Map();
    byMinute.set(minuteMs, groups);
  }
  return groups;
}

function recordsOf<Sums>(byMinute: ByMinute<Sums>, written: (sums: Sums) => string): string[] {
  const records: string[] = [];
  for (const [minuteMs, groups] of byMinute) {
    const minute = minuteOf(minuteMs);
    for (const [dims, sums] of groups) records.push(`(${minute},${written(sums)},${dims})`);
  }
  return records;
}

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isLatency = (value: unknown): value is number => Number.isFinite(value) && (value as number) >= 0;

const sum = (a: number, b: number): number => Math.min(Number.MAX_SAFE_INTEGER, a + b);

/** Compares texts as Postgres's collation C does. */
const byBytes = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Adds quotes only where they are required. Few strings need them, and each nesting level escapes the inner quotes again. */
const inQuotes = (text: string, required: RegExp): string =>
  text !== "" && !required.test(text) ? text : quoted(text);

const quoted = (text: string): string => (/["\\]/.test(text) ? `"${text.replace(/["\\]/g, "\\$&")}"` : `"${text}"`);

const arrayOf = (texts: readonly string[]): string => `{${texts.map((text) => inQuotes(text, ELEMENT)).join(",")}}`;
/** Pattern of an element that requires quotes. An unquoted NULL, in any case, means null. */
const ELEMENT = /[\s,{}"\\]|^null$/i;

/** A record contains commas and therefore always needs quotes. */
const arrayOfRecords = (records: readonly string[]): string => `{${records.map(quoted).join(",")}}`;

const recordField = (text: string): string => inQuotes(text, /[\s,()"\\]/);

const days = new Map<number, string>();
/** Returns the UTC date. Dates of a batch are cached, because formatting dominates the cost. */
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
