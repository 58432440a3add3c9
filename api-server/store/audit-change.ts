import { isDeepStrictEqual } from "node:util";

/*
 * What an audit row says of a change: the fields that differ, before and after. Its callers name each field, so that no column gets in
 * by being added to a row. Hashes and secrets are no fields of it. Of `meta`, which is the customers' own data and may be personal,
 * only its size is kept: the log outlives the object, and nothing is removed from it on request.
 */

export type Fields = Readonly<Record<string, unknown>>;

export interface AuditChange {
  readonly before?: Fields;
  readonly after?: Fields;
}

const TEXT_CHARS_MAX = 256;
const ITEMS_MAX = 50;
const DEPTH_MAX = 4;
/** Of the JSON of one field; with the number of fields that objects have, a row stays under some 20 KiB. */
const FIELD_CHARS_MAX = 2_048;

/** Returns the fields whose values differ, `null` where one side has none; nothing when none differs. Pure. */
export function changeOf(before: Fields, after: Fields): AuditChange {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (name) => !isDeepStrictEqual(asStored(before[name]), asStored(after[name])),
  );
  if (names.length === 0) return {};
  const take = (of: Fields): Fields => Object.fromEntries(names.map((name) => [name, fieldOf(name, of[name] ?? null)]));
  return { before: take(before), after: take(after) };
}

/** As JSON has it: without members that are undefined. Postgres keeps the members of an object in an order of its own. */
const asStored = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

function fieldOf(name: string, value: unknown): unknown {
  const shown = name === "meta" ? sizeOf(value) : bounded(value, 0);
  const json = JSON.stringify(shown);
  return json.length <= FIELD_CHARS_MAX ? shown : `${json.slice(0, FIELD_CHARS_MAX)}… (${json.length} characters)`;
}

/** Of an object its size alone. Two different ones may have the same, and are told apart by the caller's values. */
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
