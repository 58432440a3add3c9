import type { Queryable } from "../../postgres/queryable.ts";

export interface ApiRef {
  readonly workspaceId: string;
  readonly apiId: string;
}

export interface ApiRow {
  readonly id: string;
  readonly key_space_id: string;
  readonly name: string;
  readonly delete_protection: boolean;
  readonly default_prefix: string | null;
  readonly default_byte_length: number | null;
  readonly key_encryption: boolean;
  readonly manager: string | null;
}

export async function findApi(db: Queryable, { workspaceId, apiId }: ApiRef): Promise<ApiRow | undefined> {
  const text = `select id, key_space_id, name, delete_protection, default_prefix, default_byte_length, key_encryption, manager
                  from apis
                 where workspace_id = $1 and id = $2 and deleted_at is null`;
  const { rows } = await db.query<ApiRow>({ name: "find-api", text, values: [workspaceId, apiId] });
  return rows[0];
}

/** Returns the key spaces of the given APIs, in no particular order. Omits APIs that are deleted or belong to another workspace. */
export async function listKeySpaces(
  db: Queryable,
  { workspaceId, apiIds }: { workspaceId: string; apiIds: readonly string[] },
): Promise<{ readonly id: string; readonly keySpaceId: string }[]> {
  const text = `select id, key_space_id as "keySpaceId" from apis
                 where workspace_id = $1 and id = any($2) and deleted_at is null`;
  const { rows } = await db.query<{ id: string; keySpaceId: string }>({
    name: "list-key-spaces",
    text,
    values: [workspaceId, apiIds],
  });
  return rows;
}

/** Like `findApi`, but also locks the API: no other transaction can change its row until the current transaction ends. */
export async function lockApi(tx: Queryable, { workspaceId, apiId }: ApiRef): Promise<ApiRow | undefined> {
  const text = `select id, key_space_id, name, delete_protection, default_prefix, default_byte_length, key_encryption, manager
                  from apis
                 where workspace_id = $1 and id = $2 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<ApiRow>({ name: "lock-api", text, values: [workspaceId, apiId] });
  return rows[0];
}

/** Like `findApi`, but also locks the API: no other transaction can delete it until the current transaction ends. */
export async function shareLockApi(
  tx: Queryable,
  { workspaceId, apiId }: ApiRef,
): Promise<Pick<ApiRow, "id"> | undefined> {
  const text = `select id
                  from apis
                 where workspace_id = $1 and id = $2 and deleted_at is null
                   for share`;
  const { rows } = await tx.query<Pick<ApiRow, "id">>({ name: "share-lock-api", text, values: [workspaceId, apiId] });
  return rows[0];
}

export interface NewApi {
  readonly id: string;
  readonly workspaceId: string;
  readonly keySpaceId: string;
  readonly name: string;
  readonly manager: string | null;
  readonly createdAt: number;
}

/** Inserts an API. Returns false, and inserts nothing, if the manager already has an API. */
export async function insertApi(tx: Queryable, api: NewApi): Promise<boolean> {
  const text = `insert into apis (id, workspace_id, key_space_id, name, manager, created_at)
                values ($1, $2, $3, $4, $5, $6)
                on conflict (workspace_id, manager) where manager is not null and deleted_at is null do nothing`;
  const { id, workspaceId, keySpaceId, name, manager, createdAt } = api;
  const { rowCount } = await tx.query({
    name: "insert-api",
    text,
    values: [id, workspaceId, keySpaceId, name, manager, createdAt],
  });
  return rowCount === 1;
}

/** Updates an API. Throws a violation of `apis_manager` if the manager already has another API. */
export async function updateApi(
  tx: Queryable,
  {
    workspaceId,
    apiId,
    name,
    manager,
    updatedAt,
  }: ApiRef & { name: string; manager: string | null; updatedAt: number },
): Promise<void> {
  const text = `update apis
                   set name = $3, manager = $4, updated_at = $5
                 where workspace_id = $1 and id = $2`;
  await tx.query({ name: "update-api", text, values: [workspaceId, apiId, name, manager, updatedAt] });
}

/** Marks the API as deleted, but not its keys. */
export async function deleteApi(
  tx: Queryable,
  { workspaceId, apiId, deletedAt }: ApiRef & { deletedAt: number },
): Promise<void> {
  const text = "update apis set deleted_at = $3 where workspace_id = $1 and id = $2";
  await tx.query({ name: "delete-api", text, values: [workspaceId, apiId, deletedAt] });
}

/** An API with all of its settings. */
export interface ApiSettingsRow {
  readonly id: string;
  readonly name: string;
  readonly ip_allow_list: string[];
  readonly delete_protection: boolean;
  readonly default_prefix: string | null;
  readonly default_byte_length: number | null;
  readonly key_encryption: boolean;
  readonly manager: string | null;
  readonly created_at: number;
}

/** Like `lockApi`, but selects other columns. */
export async function lockApiSettings(
  tx: Queryable,
  { workspaceId, apiId }: ApiRef,
): Promise<ApiSettingsRow | undefined> {
  const text = `select id, name, ip_allow_list, delete_protection, default_prefix, default_byte_length, key_encryption,
                       manager, created_at
                  from apis
                 where workspace_id = $1 and id = $2 and deleted_at is null
                   for update`;
  const { rows } = await tx.query<ApiSettingsRow>({ name: "lock-api-settings", text, values: [workspaceId, apiId] });
  return rows[0];
}

/** API settings that manifests do not contain. */
export interface ApiSettings {
  readonly ipAllowList: readonly string[];
  readonly deleteProtection: boolean;
  readonly defaultPrefix: string | null;
  readonly defaultByteLength: number | null;
  readonly keyEncryption: boolean;
}

export async function updateApiSettings(
  tx: Queryable,
  { workspaceId, apiId, settings, updatedAt }: ApiRef & { settings: ApiSettings; updatedAt: number },
): Promise<void> {
  const text = `update apis
                   set ip_allow_list = $3, delete_protection = $4, default_prefix = $5, default_byte_length = $6,
                       key_encryption = $7, updated_at = $8
                 where workspace_id = $1 and id = $2 and deleted_at is null`;
  const { ipAllowList, deleteProtection, defaultPrefix, defaultByteLength, keyEncryption } = settings;
  await tx.query({
    name: "update-api-settings",
    text,
    values: [
      workspaceId,
      apiId,
      ipAllowList,
      deleteProtection,
      defaultPrefix,
      defaultByteLength,
      keyEncryption,
      updatedAt,
    ],
  });
}

/** Returns the id of every API of a workspace, including deleted ones, because their keys are projected too. */
export async function listEveryApiId(db: Queryable, workspaceId: string): Promise<string[]> {
  const text = "select a.id from apis a where a.workspace_id = $1 order by a.id";
  const { rows } = await db.query<{ id: string }>({ name: "list-every-api-id", text, values: [workspaceId] });
  return rows.map(({ id }) => id);
}
