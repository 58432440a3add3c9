import type { Input } from "../../core/api/procedures.ts";
import type { Api } from "../api/client.ts";
import type { ListProcedure, Row } from "../api/queries.ts";
import type { ComboboxOption } from "./combobox.tsx";
import { limitText } from "./limit-draft.ts";

/* Objects that a field searches and offers. */

/** Objects of one kind. */
export interface OptionSource {
  /** Unique among all sources. */
  readonly id: string;
  /** Throws `ApiError`. */
  readonly find: (api: Api, text: string, signal: AbortSignal) => Promise<readonly ComboboxOption[]>;
}

/** Objects that a form refers to by name, such as roles. */
export interface PickerSource extends OptionSource {
  /** Noun of one object, such as "role". */
  readonly one: string;
  readonly many: string;
  /** Whether the server creates a missing object when the form is submitted. */
  readonly isCreated: boolean;
  /** Whether a comma separates typed values, because no value contains one. */
  readonly hasNoCommas: boolean;
  readonly isCaseSensitive: boolean;
  readonly lengthMax: number;
  /** Returns whether an object has this name; `undefined` if that is not known. */
  readonly has: (api: Api, name: string, signal: AbortSignal) => Promise<boolean | undefined>;
}

/** Maximum number of options; a longer search text finds others. */
export const OFFERED_MAX = 50;
/** Maximum length of a search text that the server accepts. */
const SEARCH_LENGTH_MAX = 256;

type Searched = Exclude<ListProcedure, "admin.searchKeys">;

/** Returns a search that calls a list procedure with the parameter `search`. */
const listed =
  <P extends Searched>(procedure: P, others: object, toOption: (row: Row<P>) => ComboboxOption): OptionSource["find"] =>
  async (api, text, signal) => {
    const search = text === "" ? {} : { search: text.slice(0, SEARCH_LENGTH_MAX) };
    const body = { ...others, ...search, limit: OFFERED_MAX } as unknown as Input<P>;
    return ((await api.call(procedure, body, { signal })).data as unknown as readonly Row<P>[]).map(toOption);
  };

const isSame = (one: string | undefined, other: string): boolean => one?.toLowerCase() === other.toLowerCase();

export const APIS: OptionSource = {
  id: "apis",
  find: listed("admin.listApis", {}, ({ apiId, name }) => ({ value: apiId, label: name, note: apiId })),
};

export const NAMESPACES: OptionSource = {
  id: "namespaces",
  find: listed("ratelimit.listNamespaces", {}, ({ id, name }) => ({ value: id, label: name, note: id })),
};

export const ROLES: PickerSource = {
  id: "roles",
  one: "role",
  many: "roles",
  isCreated: false,
  hasNoCommas: false,
  isCaseSensitive: false,
  lengthMax: 128,
  find: listed("admin.listRoles", {}, ({ name, permissionCount }) => ({
    value: name,
    label: name,
    note: `${permissionCount.toLocaleString("en")} ${permissionCount === 1 ? "permission" : "permissions"}`,
  })),
  // The list is sorted by name. The cursor of a page is the name of its first row, so a page at `name` shows whether the role exists.
  has: async (api, name, signal) => {
    const { data } = await api.call("admin.listRoles", { cursor: name, limit: 1 }, { signal });
    return isSame(data[0]?.name, name);
  },
};

export const PERMISSIONS: PickerSource = {
  id: "permissions",
  one: "permission",
  many: "permissions",
  isCreated: true,
  hasNoCommas: true,
  isCaseSensitive: false,
  lengthMax: 128,
  find: listed("admin.listPermissions", {}, ({ slug, name }) => ({
    value: slug,
    label: slug,
    ...(name === slug ? {} : { note: name }),
  })),
  has: async (api, slug, signal) => {
    const { data } = await api.call("admin.listPermissions", { cursor: slug, limit: 1 }, { signal });
    return isSame(data[0]?.slug, slug);
  },
};

export const IDENTITIES: PickerSource = {
  id: "identities",
  one: "identity",
  many: "identities",
  isCreated: true,
  hasNoCommas: true,
  isCaseSensitive: true,
  lengthMax: 255,
  find: listed("identities.listIdentities", {}, ({ externalId, id }) => ({
    value: externalId,
    label: externalId,
    note: id,
  })),
  has: async (api, externalId, signal) => {
    const { data, next } = await api.call("identities.listIdentities", { search: externalId, limit: 100 }, { signal });
    return data.some((one) => one.externalId === externalId) || (next === undefined ? false : undefined);
  },
};

/** Overrides of a namespace, by their identifiers. */
export const overridesOf = (namespace: string): PickerSource => ({
  id: `overrides ${namespace}`,
  one: "override",
  many: "overrides",
  isCreated: true,
  hasNoCommas: false,
  isCaseSensitive: true,
  lengthMax: 512,
  find: listed("admin.listOverrides", { namespace }, ({ identifier, limit, duration }) => ({
    value: identifier,
    label: identifier,
    note: limitText(limit, duration),
  })),
  has: async (api, identifier, signal) => {
    const body = { namespace, search: identifier.slice(0, SEARCH_LENGTH_MAX), limit: 100 };
    const { data, next } = await api.call("admin.listOverrides", body, { signal });
    return data.some((one) => one.identifier === identifier) || (next === undefined ? false : undefined);
  },
});
