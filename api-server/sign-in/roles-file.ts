import { isMap, isNode, isScalar, LineCounter, type Node, parseDocument } from "yaml";
import * as z from "zod";
import { PERSON_ROLES } from "../../core/permissions/person-roles.ts";
import type { Assignment, RolesOfGroups } from "../../core/sessions/assignments.ts";

/*
 * The roles file, which assigns roles to groups. It is configuration, not a table, so that it can be reviewed and rolled back like the rest
 * of an installation, and so that a person's access does not depend on earlier sign-ins.
 */

const NAME_LENGTH_MAX = 255;
const Name = z.string().min(1).max(NAME_LENGTH_MAX);

export const RolesFile = z
  .strictObject({
    groups: z
      .record(Name, z.record(Name, z.enum(PERSON_ROLES)))
      .describe("Roles by group name and workspace; a workspace is an id, a name, or * for all."),
  })
  .describe("Dashboard roles of the groups of an OpenID provider.");
export type RolesFile = z.infer<typeof RolesFile>;

/** Maximum length of the file, equal to that of a Kubernetes ConfigMap. */
const LENGTH_MAX = 1_048_576;

/** Parses a roles file. Throws an Error with the line and column of the problem. */
export function parseRolesFile(text: string): RolesOfGroups {
  if (text.length > LENGTH_MAX) throw new Error(`the file has more than ${LENGTH_MAX} characters`);
  const lines = new LineCounter();
  // `uniqueKeys` is off, because the library compares each key with every other key, which takes minutes for about 10,000 keys.
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false, prettyErrors: false });
  const positionAt = (offset: number): string => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const [fault] = document.errors;
  if (fault !== undefined) throw new Error(`${positionAt(fault.pos[0])}: ${fault.message}`);
  const repeated = findRepeatedKey(document.contents);
  if (repeated !== undefined) throw new Error(`${positionAt(repeated.range?.[0] ?? 0)}: Map keys must be unique`);
  const parsed = RolesFile.safeParse(document.toJS({ maxAliasCount: 0 }) ?? {});
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const node = document.getIn(issue?.path ?? [], true);
    const place = isNode(node) && node.range ? `${positionAt(node.range[0])}: ` : "";
    throw new Error(`${place}${issue?.path.join(".") || "the file"}: ${issue?.message ?? "does not fit"}`);
  }
  const assignments = new Map(
    Object.entries(parsed.data.groups).map(([group, roles]) => [
      group,
      Object.entries(roles).map(([workspace, role]): Assignment => ({ workspace, role })),
    ]),
  );
  return Object.assign((groups: readonly string[]) => groups.flatMap((group) => assignments.get(group) ?? []), {
    names: () => [...assignments.keys()],
  });
}

/** Finds a group that occurs twice. This is an error, because the parser would ignore one of the two entries. */
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

/** Like `parseRolesFile`, but for a text that can change. The text is parsed again after each change. */
export function followRoles(current: () => string): RolesOfGroups {
  let known: { readonly text: string; readonly roles: RolesOfGroups } | undefined;
  const roles = (): RolesOfGroups => {
    const text = current();
    if (known?.text !== text) known = { text, roles: parseRolesFile(text) };
    return known.roles;
  };
  return Object.assign((groups: readonly string[]) => roles()(groups), { names: () => roles().names() });
}
