import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { makeId } from "../../../core/ids.ts";
import { hashKey, ROOT_KEY_LENGTH_MIN } from "../../../core/keys/key-string.ts";
import { ALL_GRANTS } from "../../../core/permissions/root-key.ts";
import { deleteRootKey, upsertRootKey } from "../../db/root-keys.ts";
import { findSetting, putSetting } from "../../db/settings.ts";
import { findWorkspace, insertWorkspace } from "../../db/workspaces.ts";
import { insertNewRootKey } from "./root-keys.ts";

/* Creates the first workspace and its root keys. Without a root key, nobody can call the API. */

const ID_BYTES = 24;
const START_LENGTH = 4;
const DEV_SETTING = "dev-root-key";

/** Returns the id of the workspace with this name. Creates a missing workspace. */
export async function ensureWorkspace(db: Pool, name: string): Promise<string> {
  await insertWorkspace(db, { id: makeId("workspace", randomBytes(ID_BYTES)), name, createdAt: Date.now() });
  const found = await findWorkspace(db, { workspace: name });
  if (found === undefined) throw new Error(`workspace ${name} was deleted`);
  return found.id;
}

/**
 * Registers a configured root key (POSTERN_ROOT_KEY) with every grant of this version. Throws if it is so short that it could be guessed.
 */
export async function registerRootKey(db: Pool, options: { workspaceId: string; rootKey: string }): Promise<void> {
  const { workspaceId, rootKey } = options;
  if (rootKey.length < ROOT_KEY_LENGTH_MIN) {
    throw new Error(
      `POSTERN_ROOT_KEY has ${rootKey.length} characters; a root key needs at least ${ROOT_KEY_LENGTH_MIN}: \`openssl rand -hex 24\` makes one`,
    );
  }
  await upsertRootKey(db, {
    id: makeId("rootKey", randomBytes(ID_BYTES)),
    workspaceId,
    hash: hashKey(rootKey),
    start: rootKey.slice(0, START_LENGTH),
    name: "bootstrap",
    permissions: ALL_GRANTS,
    expiresAt: null,
    createdAt: Date.now(),
  });
}

/** Creates the root key for this start of `postern dev`, and revokes the root key of the previous start. */
export async function replaceDevRootKey(db: Pool, workspaceId: string): Promise<string> {
  const last = await findSetting<{ workspaceId: string; rootKeyId: string }>(db, DEV_SETTING);
  const { rootKeyId, rootKey } = await insertNewRootKey(db, {
    workspaceId,
    permissions: ALL_GRANTS,
    name: "postern dev",
  });
  await putSetting(db, DEV_SETTING, { workspaceId, rootKeyId });
  if (last !== undefined) await deleteRootKey(db, { ...last, deletedAt: Date.now() });
  return rootKey;
}
