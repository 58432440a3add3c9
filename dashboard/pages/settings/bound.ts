import type { Data } from "../../../core/api/procedures.ts";
import { parseCount } from "../../components/duration.ts";

/* Limits on the usage queries of a workspace: their labels, descriptions and form fields. The functions are pure. */

export type Bound = Data<"admin.getSettings">["bounds"][number];

interface Words {
  readonly label: string;
  readonly unit: string;
  /** Description of the limit, in one sentence. */
  readonly about: string;
}

const WORDS: Readonly<Record<string, Words>> = {
  queryRows: { label: "Rows of a response", unit: "rows", about: "Longer responses are truncated, as with LIMIT." },
  querySeconds: { label: "Run time of a query", unit: "s", about: "Queries that run longer fail with 422." },
  queryMemoryMb: { label: "Memory of a query", unit: "MB", about: "Queries that need more fail with 422." },
  maxResponseMib: { label: "Size of a response", unit: "MiB", about: "Queries with a larger response fail with 422." },
  queriesPerHour: {
    label: "Queries per hour",
    unit: "queries",
    about: "Queries of all root keys and people; more queries get 429. 0 rejects all queries.",
  },
  querySecondsPerHour: {
    label: "Run time of all queries per hour",
    unit: "s",
    about: "Sum over all queries of the workspace; when it is used up, further queries get 429.",
  },
  verificationsDays: {
    label: "Verifications",
    unit: "days",
    about: "Retention of verifications. A longer retention does not restore deleted data.",
  },
  ratelimitsDays: {
    label: "Rate-limit decisions",
    unit: "days",
    about: "Retention of single decisions.",
  },
  ratelimitsMinuteDays: {
    label: "Rate-limit counts per minute",
    unit: "days",
    about: "Retention of these counts.",
  },
  ratelimitsHourDays: {
    label: "Rate-limit counts per hour",
    unit: "days",
    about: "Retention of these counts.",
  },
  ratelimitsDayDays: {
    label: "Rate-limit counts per day",
    unit: "days",
    about: "Retention of these counts.",
  },
  ratelimitsMonthDays: {
    label: "Rate-limit counts per month",
    unit: "days",
    about: "Retention of these counts.",
  },
};

/**
 * Returns the label, unit and description of a limit. If this release does not know the limit, returns its name and the server's
 * description.
 */
export const wordsOf = ({ name, about }: Pick<Bound, "name" | "about">): Words =>
  Object.hasOwn(WORDS, name) ? (WORDS[name] as Words) : { label: name, unit: "", about };

/** Returns the label of a field, including the unit. */
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

/** Changes to send, and an error message for each limit whose text is invalid, by limit name. */
export interface BoundsDraft {
  readonly changes: readonly BoundChange[];
  readonly faults: ReadonlyMap<string, string>;
}

/** Parses the fields of a form. A missing field leaves its limit unchanged; an empty field selects the default. */
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
      faults.set(name, `An integer from ${number(min)} to ${number(max)}; empty for the default.`);
    } else if (typed !== value) {
      changes.push({ bound, to: typed });
    }
  }
  return { changes, faults };
}
