import type { Answer, StoreApi } from "../api/client.ts";

/** The data, or undefined for a 404. Throws for any other refusal: a read has no business with those. */
export function foundOr404<T>(answer: Answer<T>): T | undefined {
  if (answer.refusal === undefined) return answer.data;
  if (answer.refusal.status === 404) return undefined;
  throw new Error(`${answer.refusal.kind}: ${answer.refusal.detail}`);
}

type ManagedKind = "api" | "role" | "namespace" | "override" | "policy";

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
