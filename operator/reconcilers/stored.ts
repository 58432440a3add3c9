import type { Answer, Input, StoreApi } from "../api/client.ts";

/** The data, or undefined for a 404. Throws for any other refusal: a read has no business with those. */
export function foundOr404<T>(answer: Answer<T>): T | undefined {
  if (answer.refusal === undefined) return answer.data;
  if (answer.refusal.status === 404) return undefined;
  throw new Error(`${answer.refusal.kind}: ${answer.refusal.detail}`);
}

/** The kinds of which a manager has one object at most, as the API names them. */
type ManagedKind = Input<"managed.findObject">["kind"];

export interface Managed {
  /** undefined for an object that no manifest manages. */
  readonly manager: string | undefined;
  readonly async: boolean | undefined;
}

/** Who manages the object with this id; undefined when there is none. */
export async function findManaged(api: StoreApi, kind: ManagedKind, id: string): Promise<Managed | undefined> {
  const found = foundOr404(await api.call("managed.getObject", { kind, id }));
  return found === undefined ? undefined : { manager: found.manager, async: found.async };
}

/** What a manager has in the store. */
export interface Owned {
  readonly id: string;
  /** Of an override. */
  readonly namespaceId: string | undefined;
  readonly async: boolean | undefined;
}

/**
 * The one object of the kind that this manager has; undefined when it has none. What an object has in the store is asked of the
 * store, never read from its status: everybody who may write a status could name any id there.
 */
export async function findOwned(api: StoreApi, kind: ManagedKind, manager: string): Promise<Owned | undefined> {
  const found = foundOr404(await api.call("managed.findObject", { kind, manager }));
  return found === undefined ? undefined : { id: found.id, namespaceId: found.namespaceId, async: found.async };
}

/**
 * What a manager has in the store, if it has something of the kind; else what has the name that it wants there, which may be
 * managed by another or not at all.
 * @param find by id or name; an id beats a name when one thing's name is another's id, so that `isNamed` looks at what was found.
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
): Promise<Stored | undefined> {
  const owned = await findOwned(api, kind, manager);
  const own = owned === undefined ? undefined : await find(owned.id);
  if (own?.manager === manager) return own;
  const named = name === undefined ? undefined : await find(name);
  return name !== undefined && named !== undefined && isNamed(named, name) ? named : undefined;
}
