import type { Queryable } from "../../../postgres/queryable.ts";
import { listKeySpaces } from "../../db/apis.ts";
import { listNamespaceIds } from "../../db/namespaces.ts";

interface Held {
  readonly workspaceId: string;
  /** Ids in the root key's permission tuples. */
  readonly ids: "all" | readonly string[];
}

/*
 * Resolves the ids that a root key is allowed to read. A root key that holds `read_analytics` for single objects sees only their rows. Ids
 * that match no live object of the workspace are ignored, so that the response does not reveal whether they exist elsewhere.
 */

/** Returns the key spaces of the APIs that the root key is allowed to read; `undefined` for all of the workspace. */
export async function keySpacesOf(db: Queryable, { workspaceId, ids }: Held): Promise<readonly string[] | undefined> {
  if (ids === "all") return undefined;
  return (await listKeySpaces(db, { workspaceId, apiIds: ids })).map(({ keySpaceId }) => keySpaceId);
}

/** Returns the existing namespaces that the root key is allowed to read; `undefined` for all of the workspace. */
export async function namespacesOf(db: Queryable, { workspaceId, ids }: Held): Promise<readonly string[] | undefined> {
  return ids === "all" ? undefined : listNamespaceIds(db, { workspaceId, ids });
}
