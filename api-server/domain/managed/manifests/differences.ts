import { isDeepStrictEqual } from "node:util";

/**
 * A member that a manifest changes: its path, and its values before and after the change. A value is omitted if the member does not exist
 * on that side.
 */
export interface Difference {
  readonly path: string;
  readonly old?: unknown;
  readonly new?: unknown;
}

/** Maximum number of differences. If there are more, only the outermost members that differ are listed. */
const DIFFERENCES_MAX = 200;

type Members = Readonly<Record<string, unknown>>;

/** Returns the differences between the stored and the desired members, in the order of the desired ones. Pure. */
export function differencesBetween(stored: Members | undefined, desired: Members): Difference[] {
  const before = asJson(stored ?? {}) as Members;
  const after = asJson(desired) as Members;
  const all = [...membersOf("", before, after)];
  return all.length <= DIFFERENCES_MAX ? all : [...membersOf("", before, after, false)];
}

/** Removes `undefined` members, which neither JSON nor the database contains. */
const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

function* membersOf(path: string, before: Members, after: Members, isDeep = true): Generator<Difference> {
  const names = new Set([...Object.keys(after), ...Object.keys(before)]);
  for (const name of names) {
    const at = path === "" ? name : `${path}.${name}`;
    const [a, b] = [own(before, name), own(after, name)];
    if (isDeep) yield* valuesAt(at, a, b);
    else if (!isDeepStrictEqual(a, b)) yield difference(at, a, b);
  }
}

const own = (members: Members, name: string): unknown => (Object.hasOwn(members, name) ? members[name] : undefined);

function* valuesAt(path: string, before: unknown, after: unknown): Generator<Difference> {
  if (isDeepStrictEqual(before, after)) return;
  if (isList(before) && isList(after)) {
    for (let i = 0; i < Math.max(before.length, after.length); i++)
      yield* valuesAt(`${path}[${i}]`, before[i], after[i]);
  } else if (isMembers(before) && isMembers(after)) yield* membersOf(path, before, after);
  else yield difference(path, before, after);
}

/** Whether a value is a list of objects. Lists of strings are not compared by position, because their order rarely matters. */
const isList = (value: unknown): value is readonly Members[] => Array.isArray(value) && value.every(isMembers);

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const difference = (path: string, before: unknown, after: unknown): Difference => ({
  path,
  ...(before === undefined ? {} : { old: before }),
  ...(after === undefined ? {} : { new: after }),
});
