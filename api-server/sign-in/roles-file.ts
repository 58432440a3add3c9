import { isMap, isNode, isScalar, LineCounter, type Node, parseDocument } from "yaml";
import * as z from "zod";
import { PERSON_ROLES } from "../../core/permissions/person-roles.ts";
import type { Assignment } from "../../core/sessions/assignments.ts";

/*
 * The file that says which role a group has, and where. It is configuration and not a table, so that it is reviewed and rolled back like the
 * rest of an installation, and so that who may sign in does not depend on who has signed in before.
 */

const NAME_LENGTH_MAX = 255;
const Name = z.string().min(1).max(NAME_LENGTH_MAX);

export const RolesFile = z
  .strictObject({
    groups: z
      .record(Name, z.record(Name, z.enum(PERSON_ROLES)))
      .describe("By the group, as the provider names it: by the workspace (its id, its name, or * for all) the role."),
  })
  .describe("Which roles the groups of an OpenID provider have at the dashboard.");
export type RolesFile = z.infer<typeof RolesFile>;

/** What a person with these groups may do. A group that the file does not name gives nothing. */
export type RolesOfGroups = (groups: readonly string[]) => readonly Assignment[];

/** What a ConfigMap of Kubernetes holds at most. */
const LENGTH_MAX = 1_048_576;

/** Throws an Error that names the line and the column. */
export function parseRolesFile(text: string): RolesOfGroups {
  if (text.length > LENGTH_MAX) throw new Error(`the file has more than ${LENGTH_MAX} characters`);
  const lines = new LineCounter();
  // The library compares each key with each other one, which takes minutes for some ten thousand.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false, prettyErrors: false });
  const placeAt = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const [fault] = document.errors;
  if (fault !== undefined) throw new Error(`${placeAt(fault.pos[0])}: ${fault.message}`);
  const repeated = findRepeatedKey(document.contents);
  if (repeated !== undefined) throw new Error(`${placeAt(repeated.range?.[0] ?? 0)}: Map keys must be unique`);
  const parsed = RolesFile.safeParse(document.toJS({ maxAliasCount: 0 }) ?? {});
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const node = document.getIn(issue?.path ?? [], true);
    const place = isNode(node) && node.range ? `${placeAt(node.range[0])}: ` : "";
    throw new Error(`${place}${issue?.path.join(".") || "the file"}: ${issue?.message ?? "does not fit"}`);
  }
  const assignments = new Map(
    Object.entries(parsed.data.groups).map(([group, roles]) => [
      group,
      Object.entries(roles).map(([workspace, role]): Assignment => ({ workspace, role })),
    ]),
  );
  return (groups) => groups.flatMap((group) => assignments.get(group) ?? []);
}

/** A group that is named twice would have one of its entries overlooked. */
function findRepeatedKey(node: unknown): Node | undefined {
  if (!isMap(node)) return undefined;
  const seen = new Set<string>();
  for (const { key, value } of node.items) {
    if (isScalar(key)) {
      const name = String(key.value);
      if (seen.has(name)) return key;
      seen.add(name);
    }
    const within = findRepeatedKey(value);
    if (within !== undefined) return within;
  }
  return undefined;
}

/** The same for a text that may change: it is read again when it does. */
export function followRoles(current: () => string): RolesOfGroups {
  let known: { readonly text: string; readonly roles: RolesOfGroups } | undefined;
  return (groups) => {
    const text = current();
    if (known?.text !== text) known = { text, roles: parseRolesFile(text) };
    return known.roles(groups);
  };
}
