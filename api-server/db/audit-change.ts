import { isDeepStrictEqual } from "node:util";

/*
 * The changed fields of an audited object, with their values before and after the change. Callers name each field, so that a new column is
 * never logged by accident. Hashes and secrets are never included. `meta` is customer data and may be personal, so only its size is stored:
 * the log outlives the object, and its rows are not removed on request.
 */

export type Fields = Readonly<Record<string, unknown>>;

export interface AuditChange {
  readonly before?: Fields;
  readonly after?: Fields;
}

const TEXT_CHARS_MAX = 256;
const ITEMS_MAX = 50;
const DEPTH_MAX = 4;
/** Maximum JSON length of one field. Objects have few enough fields that a row stays below about 20 KiB. */
const FIELD_CHARS_MAX = 2_048;

/** Returns only the fields whose values differ. A field that is missing on one side is `null` there. Pure. */
export function changeOf(before: Fields, after: Fields): AuditChange {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !isDeepStrictEqual(asStored(before[name]), asStored(after[name])),
  );
  if (names.length === 0) return {};
  const take = (of: Fields): Fields => Object.fromEntries(names.map((name) => [name, fieldOf(name, of[name] ?? null)]));
  return { before: take(before), after: take(after) };
}

/**
 * Returns the value as JSON would store it, without `undefined` members. Postgres reorders the members of an object, so values are
 * normalized before the comparison.
 */
const asStored = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

function fieldOf(name: string, value: unknown): unknown {
  const shown = name === "meta" ? sizeOf(value) : bounded(value, 0);
  const json = JSON.stringify(shown);
  return json.length <= FIELD_CHARS_MAX ? shown : `${json.slice(0, FIELD_CHARS_MAX)}… (${json.length} characters)`;
}

/** Returns only the size of an object. Values are compared before this step, because different objects may have the same size. */
function sizeOf(meta: unknown): unknown {
  if (typeof meta !== "object" || meta === null) return null;
  return { members: Object.keys(meta).length, bytes: Buffer.byteLength(JSON.stringify(meta)) };
}

function bounded(value: unknown, depth: number): unknown {
  if (typeof value === "string") return value.length <= TEXT_CHARS_MAX ? value : `${value.slice(0, TEXT_CHARS_MAX)}…`;
  if (typeof value !== "object" || value === null) return value ?? null;
  if (depth === DEPTH_MAX) return "…";
  const one = (member: unknown): unknown => bounded(member, depth + 1);
  if (Array.isArray(value)) {
    const more = value.length - ITEMS_MAX;
    return [...value.slice(0, ITEMS_MAX).map(one), ...(more > 0 ? [`… ${more} more`] : [])];
  }
  const members = Object.entries(value).slice(0, ITEMS_MAX);
  return Object.fromEntries(members.map(([name, member]) => [name.slice(0, TEXT_CHARS_MAX), one(member)]));
}
