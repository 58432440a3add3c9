import { randomBytes } from "node:crypto";
import type { Pool } from "pg";
import { makeId } from "../../../core/ids.ts";
import { hashKey, makeKeyString, ROOT_KEY_LENGTH_MIN } from "../../../core/keys/key-string.ts";
import { ALL_GRANTS } from "../../../core/permissions/root-key.ts";
import type { Queryable } from "../../../postgres/queryable.ts";
import { deleteRootKey, insertRootKey, type NewRootKey, upsertRootKey } from "../../db/root-keys.ts";
import { findSetting, putSetting } from "../../db/settings.ts";
import { findWorkspace, insertWorkspace } from "../../db/workspaces.ts";

/* Creates the first workspace and its root keys, without which the API cannot be called. */

const ROOT_KEY_PREFIX = "postern";
const ID_BYTES = 24;
const START_LENGTH = 4;
const DEV_SETTING = "dev-root-key";

/** Returns the id of the workspace with this name, and creates it if it is missing. */
export async function ensureWorkspace(db: Pool, name: string): Promise<string> {
  await insertWorkspace(db, { id: makeId("workspace", randomBytes(ID_BYTES)), name, createdAt: Date.now() });
  const found = await findWorkspace(db, { workspace: name });
  if (found === undefined) throw new Error(`workspace ${name} was deleted`);
  return found.id;
}

/** Creates a root key. Only the result contains its string. */
export async function createRootKey(
  db: Queryable,
  options: Pick<NewRootKey, "workspaceId" | "permissions" | "environment" | "predecessorId"> & {
    name?: string | null;
    expiresAtMs?: number | null;
    /** Unix ms. Default: the machine's clock. */
    createdAt?: number;
  },
): Promise<{ rootKeyId: string; rootKey: string; start: string; createdAt: number }> {
  const { key, start } = makeKeyString({ prefix: ROOT_KEY_PREFIX, randomBytes: randomBytes(24) });
  const rootKeyId = makeId("rootKey", randomBytes(ID_BYTES));
  const { name = null, expiresAtMs = null, createdAt = Date.now(), ...rest } = options;
  await insertRootKey(db, {
    ...rest,
    id: rootKeyId,
    hash: hashKey(key),
    start,
    name,
    expiresAt: expiresAtMs,
    createdAt,
  });
  return { rootKeyId, rootKey: key, start, createdAt };
}

/** Registers a configured root key (POSTERN_ROOT_KEY) with every grant of this version. Throws if it is too short to be secret. */
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

/** Creates the root key of this start of `postern dev`, and revokes that of the previous start. */
export async function replaceDevRootKey(db: Pool, workspaceId: string): Promise<string> {
  const last = await findSetting<{ workspaceId: string; rootKeyId: string }>(db, DEV_SETTING);
  const { rootKeyId, rootKey } = await createRootKey(db, { workspaceId, permissions: ALL_GRANTS, name: "postern dev" });
  await putSetting(db, DEV_SETTING, { workspaceId, rootKeyId });
  if (last !== undefined) await deleteRootKey(db, { ...last, deletedAt: Date.now() });
  return rootKey;
}
