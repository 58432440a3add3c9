import { isDeepStrictEqual } from "node:util";

/** JSON patch operation (RFC 6902). */
export type PatchOperation =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: unknown }
  | { readonly op: "remove"; readonly path: string };

type Members = Readonly<Record<string, unknown>>;

/**
 * Returns the JSON patch from `before` to `after`. Lists of equal length are compared item by item; other lists are replaced completely,
 * which costs little because a pod's lists are short.
 */
export function patchOf(before: unknown, after: unknown, path = ""): PatchOperation[] {
  if (isDeepStrictEqual(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.flatMap((item, i) => patchOf(item, after[i], `${path}/${i}`));
  }
  if (isMembers(before) && isMembers(after)) return patchOfMembers(before, after, path);
  return [{ op: "replace", path, value: after }];
}

function patchOfMembers(before: Members, after: Members, path: string): PatchOperation[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name): PatchOperation[] => {
    const at = `${path}/${pointerToken(name)}`;
    const [old, now] = [memberOf(before, name), memberOf(after, name)];
    if (now === undefined) return old === undefined ? [] : [{ op: "remove", path: at }];
    return old === undefined ? [{ op: "add", path: at, value: now }] : patchOf(old, now, at);
  });
}

/** Returns a member of the object itself; ignores inherited members such as `toString`. */
const memberOf = (members: Members, name: string): unknown =>
  Object.hasOwn(members, name) ? members[name] : undefined;

const isMembers = (value: unknown): value is Members =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const pointerToken = (name: string): string => name.replaceAll("~", "~0").replaceAll("/", "~1");
