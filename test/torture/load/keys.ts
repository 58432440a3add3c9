import { ABSENT, type KeyKind, type KeyState } from "../model.ts";
import type { Random } from "../random.ts";
import type { WorkspaceName } from "../world/world.ts";

/** The automatic limit of a limited key, in requests per window. */
export const LIMIT = 20;
export const LIMIT_WINDOW_MS = 5_000;
/** The workspace whose sidecars count locally when the shared counters are too slow. The other sidecars then refuse. */
export const LOCAL_WORKSPACE: WorkspaceName = "second";
/** The initial credits of a credited key: few enough to be used up in a minute. */
export const CREDITS = 40;
/** The permission for the guarded path. */
export const PERMISSION = "orders.write";

/** Roles per workspace that hold the permission or do not; some keys hold one of them. */
export const ROLES = 6;
export const roleName = (n: number): string => `shift-${n}`;
/** The number of permissions that all keys of `second` hold, until a bulk change deletes one. */
export const BULK_PERMISSIONS = 12;
export const bulkPermission = (n: number): string => `bulk.${n}`;
export const BULK_WORKSPACE: WorkspaceName = "second";

/** Their names in the journal. */
export const roleKey = (workspace: WorkspaceName, role: string): string => `role ${workspace} ${role}`;
export const permissionKey = (slug: string): string => `permission ${BULK_WORKSPACE} ${slug}`;

/** A role that grants the permission to its keys, or revokes it. */
export interface LoadRole {
  readonly name: string;
  readonly workspace: WorkspaceName;
  readonly roleId: string;
  readonly keys: LoadKey[];
  grants: boolean;
  uncertain: boolean;
  busy: boolean;
}

/** A key as the clients of its workspace see it. */
export interface LoadKey {
  /** Unique over all workspaces. Never changes. */
  readonly name: string;
  readonly workspace: WorkspaceName;
  readonly kind: KeyKind;
  readonly secret: string;
  readonly keyId: string;
  /** The role that it holds, if any. */
  readonly role?: LoadRole | undefined;
  /** Holds the permissions that bulk changes delete. */
  readonly bulk: boolean;
  /** After all acknowledged changes. */
  state: KeyState;
  /** A change got no reply, so the key is not changed any more. */
  uncertain: boolean;
  /** A change is in flight. */
  busy: boolean;
}

const RECENT_MAX = 200;
/** For how long a change counts as recent: it may still be on its way to a process. */
const RECENT_MS = 20_000;

/** All keys that can be presented, and those changed recently, whose verifications are the most useful. */
export class Keys {
  readonly all: LoadKey[] = [];
  readonly roles: LoadRole[] = [];
  /** How many of the bulk permissions were made, and how many of those were deleted or may have been. */
  readonly bulk = { made: 0, deleted: 0 };
  readonly #byKind = new Map<string, LoadKey[]>();
  readonly #recent: Array<{ key: LoadKey; atMs: number }> = [];

  add(key: Omit<LoadKey, "state" | "uncertain" | "busy">, state: KeyState = { ...ABSENT, exists: true }): LoadKey {
    const added: LoadKey = { ...key, state, uncertain: false, busy: false };
    this.all.push(added);
    this.of(key.workspace, key.kind).push(added);
    key.role?.keys.push(added);
    return added;
  }

  of(workspace: WorkspaceName, kind: KeyKind): LoadKey[] {
    const place = `${workspace} ${kind}`;
    let list = this.#byKind.get(place);
    if (list === undefined) {
      list = [];
      this.#byKind.set(place, list);
    }
    return list;
  }

  noteChange(key: LoadKey): void {
    this.#recent.push({ key, atMs: Date.now() });
    if (this.#recent.length > RECENT_MAX) this.#recent.shift();
  }

  /** A key of the given workspaces, for a verification. */
  pick(random: Random, workspaces: readonly WorkspaceName[]): LoadKey | undefined {
    if (random.chance(0.7)) {
      const since = Date.now() - RECENT_MS;
      const recent = this.#recent.filter(({ key, atMs }) => atMs > since && workspaces.includes(key.workspace));
      if (recent.length > 0) return random.pick(recent).key;
    }
    const list = this.of(random.pick(workspaces), "plain");
    return list.length === 0 ? undefined : random.pick(list);
  }
}
