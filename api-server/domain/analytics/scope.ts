import { listKeySpaces } from "../../store/apis.ts";
import { listNamespaceIds } from "../../store/namespaces.ts";
import type { Queryable } from "../../store/queryable.ts";

interface Held {
  readonly workspaceId: string;
  /** What the root key may read: the ids of its tuples. */
  readonly ids: "all" | readonly string[];
}

/*
 * A root key that holds `read_analytics` for single objects sees their rows and no others. Ids that name no live object of the workspace
 * add nothing, so that the answer does not tell whether they exist elsewhere.
 */

/** The key spaces of these APIs; undefined means all of the workspace. */
export async function keySpacesOf(db: Queryable, { workspaceId, ids }: Held): Promise<readonly string[] | undefined> {
  if (ids === "all") return undefined;
  return (await listKeySpaces(db, { workspaceId, apiIds: ids })).map(({ keySpaceId }) => keySpaceId);
}

/** These namespaces, as far as they exist; undefined means all of the workspace. */
export async function namespacesOf(db: Queryable, { workspaceId, ids }: Held): Promise<readonly string[] | undefined> {
  return ids === "all" ? undefined : listNamespaceIds(db, { workspaceId, ids });
}
