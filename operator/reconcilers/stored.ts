import type { Input } from "../../core/api/procedures.ts";
import type { Answer, StoreApi } from "../api/client.ts";

/** Returns the data, or undefined for a 404. Throws for any other refusal, which a read does not expect. */
export function foundOr404<T>(answer: Answer<T>): T | undefined {
  if (answer.refusal === undefined) return answer.data;
  if (answer.refusal.status === 404) return undefined;
  throw new Error(`${answer.refusal.kind}: ${answer.refusal.detail}`);
}

/** The kinds of which a manager has at most one object, by their names in the API. */
type ManagedKind = Input<"managed.findObject">["kind"];

export interface Managed {
  /** undefined for an object without a manager. */
  readonly manager: string | undefined;
  /** Of an object without one: the manager that left it in the store. */
  readonly lastManager: string | undefined;
  readonly async: boolean | undefined;
}

/** Returns the manager of the object with this id; undefined when there is no such object. */
export async function findManaged(api: StoreApi, kind: ManagedKind, id: string): Promise<Managed | undefined> {
  const found = foundOr404(await api.call("managed.getObject", { kind, id }));
  if (found === undefined) return undefined;
  const { manager, lastManager, async } = found;
  return { manager, lastManager, async };
}

/** An object that a manager has in the store. */
export interface Owned {
  readonly id: string;
  /** Only for an override. */
  readonly namespaceId: string | undefined;
  readonly async: boolean | undefined;
  /** Of what the store had before anything else of the object is read; undefined for kinds without, and from an older api-server. */
  readonly digest?: string | undefined;
}

/**
 * Returns the one object of the kind with this manager; undefined when there is none. It is always read from the
 * store and never from a status, because anyone who may write a status could name any id there.
 */
export async function findOwned(api: StoreApi, kind: ManagedKind, manager: string): Promise<Owned | undefined> {
  const found = foundOr404(await api.call("managed.findObject", { kind, manager }));
  return found === undefined
    ? undefined
    : { id: found.id, namespaceId: found.namespaceId, async: found.async, digest: found.digest };
}

/** Returns the id of what the manager left in the store, and what nothing manages since; undefined when there is nothing. */
export async function findLeft(api: StoreApi, kind: ManagedKind, manager: string): Promise<string | undefined> {
  return foundOr404(await api.call("managed.findObject", { kind, manager, left: true }))?.id;
}

/**
 * Returns the manager's object of the kind, if it has one; otherwise the object with the wanted name, which may have another
 * manager or none.
 * `digest` is that of its own object.
 * @param find by id or name; an id wins over a name when one thing's name is another's id, so `isNamed` checks the result.
 */
export async function findOwnOrNamed<Stored extends { readonly manager: string | undefined }>(
  api: StoreApi,
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
