import type { useNavigate } from "@tanstack/react-router";
import type { Data, Input } from "../../core/api/procedures.ts";
import { ApiError } from "../api/api-error.ts";
import type { Api } from "../api/client.ts";
import type { ListProcedure } from "../api/queries.ts";
import { hashKey } from "../components/hash-key.ts";
import { recognize } from "../components/recognize.ts";
import { NAVIGATION } from "./navigation.ts";

/* What the search finds: pages, actions, and objects by their name or id. */

/** One result. */
export interface SearchRow {
  /** Unique among all results. */
  readonly id: string;
  readonly label: string;
  /** Text at the right edge, such as an id. */
  readonly note?: string;
  readonly open: (navigate: ReturnType<typeof useNavigate>) => unknown;
  /** Whether the search stays open after this row is chosen, because the row only changes what is searched for. */
  readonly stays?: true;
}

export interface SearchGroup {
  readonly title: string;
  readonly rows: readonly SearchRow[];
}

/** Objects of one kind. */
export interface SearchKind {
  /** Title of the group, such as "Keys". */
  readonly title: string;
  /** The title as written within a sentence. */
  readonly many: string;
  /** Permission tuple required to read the objects. Default: none, because every role may read them. */
  readonly required?: string;
  /** Throws `ApiError`, with status 403 if the person may not read objects of this kind. */
  readonly find: (api: Api, text: string, signal: AbortSignal) => Promise<readonly SearchRow[]>;
}

/** Maximum number of results of each kind. */
const ROWS_MAX = 5;
/** Maximum length of a search text that the server accepts. */
export const SEARCH_TEXT_MAX = 255;

const PAGES: readonly SearchRow[] = NAVIGATION.flatMap(({ entries }) => entries).map(({ to, label }) => ({
  id: `page ${to}`,
  label,
  open: (navigate) => navigate({ to }),
}));

const action = (label: string, required: string, open: SearchRow["open"]) => ({
  required,
  row: { id: `action ${label}`, label, open },
});

const ACTIONS = [
  action("Create an API", "api.*.create_api", (go) => go({ to: "/apis", search: { create: "api" } })),
  action("Create a key", "api.*.create_key", (go) => go({ to: "/keys", search: { create: "key" } })),
  action("Create a root key", "workspace.*.create_root_key", (go) =>
    go({ to: "/root-keys", search: { create: "root-key" } }),
  ),
  action("Create an identity", "identity.*.create_identity", (go) =>
    go({ to: "/identities", search: { create: "identity" } }),
  ),
  action("Create a role", "rbac.*.create_role", (go) => go({ to: "/permissions", search: { create: "role" } })),
  action("Create a permission", "rbac.*.create_permission", (go) =>
    go({ to: "/permissions", search: { create: "permission" } }),
  ),
  action("Create a namespace", "ratelimit.*.create_namespace", (go) =>
    go({ to: "/ratelimits", search: { create: "namespace" } }),
  ),
  action("Create a sign-in link", "workspace.*.create_sign_in_link", (go) =>
    go({ to: "/people", search: { create: "sign-in-link" } }),
  ),
  action("Create a workspace", "installation.*.create_workspace", (go) =>
    go({ to: "/workspaces", search: { create: "workspace" } }),
  ),
];

/** Returns the pages, and the actions that the person may perform, that match the text. Those that begin with the text come first. */
export function pagesAndActions(may: (tuple: string) => boolean, text: string): readonly SearchGroup[] {
  const begins = ({ label }: SearchRow): boolean => label.toLowerCase().startsWith(text.toLowerCase());
  const all = [
    { title: "Pages", rows: PAGES },
    { title: "Actions", rows: ACTIONS.filter(({ required }) => may(required)).map(({ row }) => row) },
  ];
  return matching(all, text, ({ label }) => label).map(({ title, rows }) => ({
    title,
    rows: rows.toSorted((one, other) => Number(begins(other)) - Number(begins(one))),
  }));
}

/**
 * Returns the rows that contain every word of `text`, in their groups. Omits empty groups. `textOf` returns the text of a row to search in.
 * Default: its label, note and id.
 */
export function matching(
  groups: readonly SearchGroup[],
  text: string,
  textOf = ({ id, label, note = "" }: SearchRow): string => `${label}\n${note}\n${id}`,
): readonly SearchGroup[] {
  const words = text.toLowerCase().split(/\s+/);
  const isMatch = (row: SearchRow): boolean => {
    const texts = textOf(row).toLowerCase();
    return words.every((word) => texts.includes(word));
  };
  return withoutEmpty(groups.map(({ title, rows }) => ({ title, rows: rows.filter(isMatch) })));
}

export const withoutEmpty = (groups: readonly SearchGroup[]): readonly SearchGroup[] =>
  groups.filter(({ rows }) => rows.length > 0);

/** Format of policy ids, as core/policies/policy-id.ts generates them. Such an id would otherwise count as a key. */
const POLICY_ID = /^pol_[0-9a-f]{32}$/;

/** Returns the complete key that the text contains, for example as part of an `Authorization` header; `undefined` if it contains none. */
export function secretIn(text: string): string | undefined {
  for (const word of text.split(/[\s"'`,;:]+/)) {
    const what = recognize(word);
    if (what.kind === "secret" && !POLICY_ID.test(word)) return what.secret;
  }
  return undefined;
}

/** Finds the key with this secret. Only the hash of the secret leaves the page. Returns `undefined` if the browser cannot hash. */
export async function findBySecret(api: Api, secret: string): Promise<readonly SearchRow[] | undefined> {
  const hash = await hashKey(secret);
  if (hash === undefined) return undefined;
  return (await api.call("admin.searchKeys", { hash, limit: 1 })).data.map(keyRow);
}

const keyRow = ({ keyId, name, start }: Data<"admin.searchKeys">[number]): SearchRow => ({
  id: keyId,
  label: name ?? keyId,
  ...(start === "" ? {} : { note: `${start}…` }),
  open: (navigate) => navigate({ to: "/keys/$keyId", params: { keyId }, search: {} }),
});

/** Finds a key by its id. A text that is not a key id is searched for in names and in the visible starts of keys. */
async function findKeys(api: Api, text: string, signal: AbortSignal): Promise<readonly SearchRow[]> {
  const what = recognize(text);
  const bodies: readonly Input<"admin.searchKeys">[] =
    what.kind === "keyId" ? [{ keyId: what.keyId }] : [{ name: text }, { start: text.replace(/…$/, "") || text }];
  const found = await Promise.all(
    bodies.map((body) => api.call("admin.searchKeys", { ...body, limit: ROWS_MAX }, { signal })),
  );
  const byId = new Map(found.flatMap(({ data }) => data).map((key) => [key.keyId, key]));
  return [...byId.values()].slice(0, ROWS_MAX).map(keyRow);
}

const policyRow = ({ policyId, name }: { readonly policyId: string; readonly name: string }): SearchRow => ({
  id: policyId,
  label: name,
  note: policyId,
  open: (navigate) => navigate({ to: "/policies/$policyId", params: { policyId }, search: {} }),
});

/** Finds a policy by its id with another procedure, because the list of policies can only be searched by name. */
async function findPolicies(api: Api, text: string, signal: AbortSignal): Promise<readonly SearchRow[]> {
  if (!POLICY_ID.test(text)) {
    return (await api.call("admin.listPolicies", { search: text, limit: ROWS_MAX }, { signal })).data.map(policyRow);
  }
  try {
    return [policyRow((await api.call("admin.getPolicy", { policyId: text }, { signal })).data)];
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return [];
    throw error;
  }
}

/** Returns a search that calls a list procedure with the parameter `search`. */
const listed =
  <P extends Exclude<ListProcedure, "admin.searchKeys">>(
    procedure: P,
    toRow: (found: Data<P>[number]) => SearchRow,
  ): SearchKind["find"] =>
  async (api, search, signal) => {
    const body = { search, limit: ROWS_MAX } as unknown as Input<P>;
    const { data } = await api.call(procedure, body, { signal });
    return (data as readonly Data<P>[number][]).map(toRow);
  };

export const SEARCH_KINDS: readonly SearchKind[] = [
  {
    title: "APIs",
    many: "APIs",
    find: listed("admin.listApis", ({ apiId, name }) => ({
      id: apiId,
      label: name,
      note: apiId,
      open: (navigate) => navigate({ to: "/apis/$apiId", params: { apiId }, search: {} }),
    })),
  },
  { title: "Keys", many: "keys", find: findKeys },
  {
    title: "Identities",
    many: "identities",
    find: listed("identities.listIdentities", ({ id, externalId }) => ({
      id,
      label: externalId,
      note: id,
      open: (navigate) => navigate({ to: "/identities/$identityId", params: { identityId: id }, search: {} }),
    })),
  },
  {
    title: "Roles",
    many: "roles",
    find: listed("admin.listRoles", ({ id, name }) => ({
      id,
      label: name,
      note: id,
      // Opens the role by id, because a search for its name may also find other roles.
      open: (navigate) => navigate({ to: "/permissions", search: { roles: id } }),
    })),
  },
  {
    title: "Permissions",
    many: "permissions",
    find: listed("admin.listPermissions", ({ id, slug, name }) => ({
      id,
      label: slug,
      note: name === slug ? id : name,
      open: (navigate) => navigate({ to: "/permissions", search: { search: id } }),
    })),
  },
  {
    title: "Rate-limit namespaces",
    many: "rate-limit namespaces",
    find: listed("admin.listNamespaces", ({ id, name }) => ({
      id,
      label: name,
      note: id,
      open: (navigate) => navigate({ to: "/ratelimits/$namespaceId", params: { namespaceId: id }, search: {} }),
    })),
  },
  { title: "Policies", many: "policies", find: findPolicies },
  {
    title: "Root keys",
    many: "root keys",
    required: "workspace.*.read_root_key",
    find: listed("admin.listRootKeys", ({ rootKeyId, name, start }) => ({
      id: rootKeyId,
      label: name ?? rootKeyId,
      note: `${start}…`,
      open: (navigate) => navigate({ to: "/root-keys", search: { rootKey: rootKeyId } }),
    })),
  },
];
