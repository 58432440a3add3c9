import { compileGrants, type Grants } from "../permissions/grants.ts";
import type { ApiRecord, IdentityRecord, KeyRecord, RoleRecord, WorkspaceRecord } from "../records.ts";

export interface KeyParts {
  readonly key: KeyRecord;
  readonly workspace: WorkspaceRecord;
  readonly api: ApiRecord | undefined;
  readonly identity: IdentityRecord | undefined;
  /** Roles of the key, except deleted roles. */
  readonly roles: readonly RoleRecord[];
}

/** A key with every record that it refers to: all data that a verification needs for its decision. Built once, then cached. */
export class KeyView {
  readonly key: KeyRecord;
  readonly workspace: WorkspaceRecord;
  /** API of the key; `undefined` if the API was deleted, in which case the key counts as not found. */
  readonly api: ApiRecord | undefined;
  /** Identity of the key; `undefined` if the key has none, or if the identity was deleted. */
  readonly identity: IdentityRecord | undefined;
  /** Slugs that the key holds directly and through roles, distinct and sorted. */
  readonly permissions: readonly string[];
  /** Names of the roles, sorted. */
  readonly roles: readonly string[];
  /** Records of the roles, in the order of the key's ids. */
  readonly roleRecords: readonly RoleRecord[];
  readonly grants: Grants;
  /** Values derived from this view. The value of each function returned by `remember` has its own index. */
  readonly #made: unknown[] = [];

  constructor({ key, workspace, api, identity, roles }: KeyParts) {
    this.key = key;
    this.workspace = workspace;
    this.api = api;
    this.identity = identity;
    this.permissions = [...new Set([...key.permissions, ...roles.flatMap((role) => role.permissions)])].sort();
    this.roles = roles.map((role) => role.name).sort();
    this.roleRecords = roles;
    this.grants = compileGrants(this.permissions);
  }

  static #slots = 0;

  /**
   * Returns a function that calls `make` once for each view and caches the result as long as the view exists. Use this function for values
   * that are the same in every response or event of a key. Call it once per purpose, at module load.
   */
  static remember<T extends object | string>(make: (view: KeyView) => T): (view: KeyView) => T {
    const slot = KeyView.#slots;
    KeyView.#slots += 1;
    return (view) => {
      const known = view.#made[slot] as T | undefined;
      if (known !== undefined) return known;
      const made = make(view);
      view.#made[slot] = made;
      return made;
    };
  }
}
