import type { Data } from "../../../core/api/procedures.ts";
import { parseCount } from "../../components/duration.ts";

/* Limits on usage queries of a workspace: their texts and their form fields. The functions are pure. */

export type Bound = Data<"admin.getSettings">["bounds"][number];

interface Words {
  readonly label: string;
  readonly unit: string;
  /** Description of the limit, one sentence. */
  readonly about: string;
}

const WORDS: Readonly<Record<string, Words>> = {
  queryRows: { label: "Rows of an answer", unit: "rows", about: "A longer answer is cut, as by a LIMIT." },
  querySeconds: { label: "Run time of a query", unit: "s", about: "A query that runs for longer ends with 422." },
  queryMemoryMb: { label: "Memory of a query", unit: "MB", about: "A query that needs more ends with 422." },
  maxResponseMib: { label: "Size of a response", unit: "MiB", about: "A larger response is refused with 422." },
  queriesPerHour: {
    label: "Queries per hour",
    unit: "queries",
    about: "Of all root keys and people together; the next one gets 429. 0 refuses every query.",
  },
  querySecondsPerHour: {
    label: "Run time of all queries per hour",
    unit: "s",
    about: "Added up as queries end; when it is used up, the next one gets 429.",
  },
  verificationsDays: {
    label: "Verifications",
    unit: "days",
    about: "For how long they can be asked for. What was dropped does not come back with more days.",
  },
  ratelimitsDays: {
    label: "Decisions of rate limits, one by one",
    unit: "days",
    about: "For how long they can be asked for.",
  },
  ratelimitsMinuteDays: {
    label: "Decisions of rate limits per minute",
    unit: "days",
    about: "For how long these counts can be asked for.",
  },
  ratelimitsHourDays: {
    label: "Decisions of rate limits per hour",
    unit: "days",
    about: "For how long these counts can be asked for.",
  },
  ratelimitsDayDays: {
    label: "Decisions of rate limits per day",
    unit: "days",
    about: "For how long these counts can be asked for.",
  },
  ratelimitsMonthDays: {
    label: "Decisions of rate limits per month",
    unit: "days",
    about: "For how long these counts can be asked for.",
  },
};

/** Returns the texts of a limit; a limit that this release does not know has the server's texts. */
export const wordsOf = ({ name, about }: Pick<Bound, "name" | "about">): Words =>
  Object.hasOwn(WORDS, name) ? (WORDS[name] as Words) : { label: name, unit: "", about };

/** Returns the label of a field, which names the unit. */
export function fieldLabel(bound: Pick<Bound, "name" | "about">): string {
  const { label, unit } = wordsOf(bound);
  return unit === "" || label.toLowerCase().split(" ").includes(unit) ? label : `${label} (${unit})`;
}

const number = (value: number): string => value.toLocaleString("en");

/** Formats a limit with its unit, such as "1,000 queries". */
export const boundText = (bound: Pick<Bound, "name" | "about">, value: number): string =>
  `${number(value)} ${wordsOf(bound).unit}`.trim();

/** Returns the initial text of a field. */
export const textOf = ({ value }: Pick<Bound, "value">): string => String(value);

export interface BoundChange {
  readonly bound: Bound;
  /** New value; `null` for the default. */
  readonly to: number | null;
}

/** The changes to send, and the problems by limit. */
export interface BoundsDraft {
  readonly changes: readonly BoundChange[];
  readonly faults: ReadonlyMap<string, string>;
}

/** Parses the texts of a form; missing fields are unchanged. An empty text means the default. */
export function readBounds(bounds: readonly Bound[], texts: Readonly<Record<string, string>>): BoundsDraft {
  const changes: BoundChange[] = [];
  const faults = new Map<string, string>();
  for (const bound of bounds) {
    const { name, min, max, value, byDefault } = bound;
    const text = (texts[name] ?? textOf(bound)).trim();
    if (text === textOf(bound)) continue;
    const typed = parseCount(text);
    if (text === "") {
      if (value !== byDefault) changes.push({ bound, to: null });
    } else if (typed === undefined || typed < min || typed > max) {
      faults.set(name, `A whole number from ${number(min)} to ${number(max)}, or nothing for the default.`);
    } else if (typed !== value) {
      changes.push({ bound, to: typed });
    }
  }
  return { changes, faults };
}
