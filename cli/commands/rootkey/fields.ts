import type { RootKeySummary } from "../../../api-server/db/root-keys.ts";
import { type Fields, instantText } from "../../fields.ts";

/** Option of commands that change one root key. */
export const id = { type: "string", placeholder: "ID", help: "root key id, rk_…", required: true } as const;

/** Maximum number of permissions that a table cell names; further permissions are counted. */
const NAMED_MAX = 2;

/** Fields of a root key without its secret. */
export const rootKeyFields: Fields<RootKeySummary> = [
  { name: "rootKeyId", title: "id", value: (row) => row.id },
  { name: "workspaceId", value: (row) => row.workspace_id },
  { name: "name", title: "name", value: (row) => row.name, shrinks: true },
  { name: "environment", title: "environment", value: (row) => row.environment, shrinks: true },
  { name: "start", title: "start", value: (row) => row.start, text: (row) => `${row.start}…` },
  { name: "permissions", title: "permissions", value: (row) => row.permissions, text: permissionsText, shrinks: true },
  { name: "enabled", title: "state", value: (row) => row.enabled, text: stateText },
  {
    name: "expires",
    title: "expires",
    value: (row) => row.expires_at,
    text: (row) => instantText(row.expires_at, "never"),
  },
  { name: "successorId", value: (row) => row.successor_id },
  { name: "v1UsedOn", value: (row) => row.v1_used_on },
  { name: "createdAt", title: "created", value: (row) => row.created_at, text: (row) => instantText(row.created_at) },
];

export type MadeRootKey = Pick<
  RootKeySummary,
  "id" | "workspace_id" | "name" | "environment" | "permissions" | "expires_at"
> & {
  readonly rootKey: string;
};

/** Fields of a new root key, whose secret is shown only once. */
export const madeRootKeyFields: Fields<MadeRootKey> = [
  { name: "rootKeyId", title: "id", value: (row) => row.id },
  {
    name: "rootKey",
    title: "root key",
    value: (row) => row.rootKey,
    text: (row) => `${row.rootKey}   (shown only once)`,
  },
  { name: "workspaceId", title: "workspace", value: (row) => row.workspace_id },
  {
    name: "permissions",
    title: "permissions",
    value: (row) => row.permissions,
    text: (row) => row.permissions.join(", "),
  },
  { name: "name", title: "name", value: (row) => row.name },
  { name: "environment", title: "environment", value: (row) => row.environment },
  {
    name: "expires",
    title: "expires",
    value: (row) => row.expires_at,
    text: (row) => instantText(row.expires_at, "never"),
  },
];

function permissionsText({ permissions }: RootKeySummary): string {
  return permissions.length > NAMED_MAX ? `${permissions.length} permissions` : permissions.join(", ");
}

function stateText({ enabled, expires_at: expiresAt }: RootKeySummary): string {
  if (!enabled) return "disabled";
  return expiresAt !== null && Date.now() > expiresAt ? "expired" : "enabled";
}
