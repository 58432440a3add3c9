import type { Input } from "../../core/api/procedures.ts";
import type { ApiClient, ApiResponse } from "../api/client.ts";

/** Returns the data of a response; `undefined` for a 404. Throws for any other refusal, because a read does not expect one. */
export function foundOr404<T>(response: ApiResponse<T>): T | undefined {
  if (response.refusal === undefined) return response.data;
  if (response.refusal.status === 404) return undefined;
  throw new Error(`${response.refusal.kind}: ${response.refusal.detail}`);
}

/** Kinds with at most one object per manager, with their names in the API. */
type ManagedKind = Input<"managed.findObject">["kind"];

export interface Managed {
  /** Manager of the object; `undefined` if it has none. */
  readonly manager: string | undefined;
  /** Last manager of an object that currently has no manager. */
  readonly lastManager: string | undefined;
  readonly async: boolean | undefined;
}

/** Returns the manager of the object with this id; `undefined` if there is no such object. */
export async function findManaged(api: ApiClient, kind: ManagedKind, id: string): Promise<Managed | undefined> {
  const found = foundOr404(await api.call("managed.getObject", { kind, id }));
  if (found === undefined) return undefined;
  const { manager, lastManager, async } = found;
  return { manager, lastManager, async };
}

/** Stored object of a manager. */
export interface Owned {
  readonly id: string;
  /** Id of the namespace of an override; `undefined` for other kinds. */
  readonly namespaceId: string | undefined;
  readonly async: boolean | undefined;
  /** Digest of the object, read before its other fields; `undefined` for kinds without digests and for an older api-server. */
  readonly digest?: string | undefined;
}

/**
 * Returns the object of the kind with this manager; `undefined` if there is none. The result comes from the database and never from a
 * status, because anyone who may write a status could write any id there.
 */
export async function findOwned(api: ApiClient, kind: ManagedKind, manager: string): Promise<Owned | undefined> {
  const found = foundOr404(await api.call("managed.findObject", { kind, manager }));
  return found === undefined
    ? undefined
    : { id: found.id, namespaceId: found.namespaceId, async: found.async, digest: found.digest };
}

/** Returns the id of the unmanaged object that the manager orphaned; `undefined` if there is none. */
export async function findRemaining(api: ApiClient, kind: ManagedKind, manager: string): Promise<string | undefined> {
  return foundOr404(await api.call("managed.findObject", { kind, manager, left: true }))?.id;
}

/**
 * Returns the manager's object of the kind, with its `digest`; otherwise the object with the desired name, which has another manager or
 * none. `find` finds an object by id or name. If the name of one object is the id of another, `find` returns the latter, so `isNamed`
 * checks the result.
 */
export async function findOwnOrNamed<Stored extends { readonly manager: string | undefined }>(
  api: ApiClient,
  {
    kind,
    manager,
    name,
    find,
    isNamed,
  }: {
    readonly kind: ManagedKind;
    readonly manager: string;
    readonly name: string | undefined;
    readonly find: (idOrName: string) => Promise<Stored | undefined>;
    readonly isNamed: (stored: Stored, name: string) => boolean;
  },
): Promise<{ readonly stored: Stored | undefined; readonly digest?: string | undefined }> {
  const owned = await findOwned(api, kind, manager);
  const own = owned === undefined ? undefined : await find(owned.id);
  if (own?.manager === manager) return { stored: own, digest: owned?.digest };
  const named = name === undefined ? undefined : await find(name);
  return { stored: name !== undefined && named !== undefined && isNamed(named, name) ? named : undefined };
}
