import { createHash } from "node:crypto";
import { POSTGRES_ONLY_KINDS, type RecordKind, type RecordRef } from "../records.ts";

/*
 * Names of all keys in Redis. Every key begins with `<prefix>:<workspace>:`, so that a workspace's Redis user can be limited to that
 * pattern. The part in braces determines the slot on a cluster.
 */

export const DEFAULT_PREFIX = "ps";

/** Takes the place of the workspace in the keys of the global change stream, which api-servers follow. */
export const GLOBAL = "_central";

/** Location of a record: a string key, or a field in the hash with its namespace's overrides. */
export interface RecordSlot {
  readonly key: string;
  readonly field?: string;
}

const RECORD_LETTERS: Partial<Record<RecordKind, string>> = {
  key: "k",
  identity: "i",
  role: "r",
  api: "a",
  namespace: "n",
  namespaceName: "nn",
  policy: "p",
};

/** Field that contains all overrides with a `*`. The field of an exact identifier begins with `=`, so the two never have the same name. */
const PATTERNS_FIELD = "*";

export class RedisKeys {
  readonly #prefix: string;

  constructor(prefix: string = DEFAULT_PREFIX) {
    this.#prefix = prefix;
  }

  /** Returns the location of a record. Throws for kinds that are never stored where gates could read them. */
  record(ref: RecordRef): RecordSlot {
    if (POSTGRES_ONLY_KINDS.has(ref.kind)) throw new Error(`records of kind ${ref.kind} are not kept in Redis`);
    const base = `${this.#prefix}:${ref.workspaceId}`;
    if (ref.kind === "workspace") return { key: `${base}:w` };
    if (ref.kind === "overridePatterns") return { key: `${base}:o:{${ref.id}}`, field: PATTERNS_FIELD };
    if (ref.kind === "override") {
      const slash = ref.id.indexOf("/");
      return { key: `${base}:o:{${ref.id.slice(0, slash)}}`, field: `=${ref.id.slice(slash + 1)}` };
    }
    return { key: `${base}:${RECORD_LETTERS[ref.kind]}:{${ref.id}}` };
  }

  /** Sorted set of the fields with tombstones in a hash of overrides, by the time from which each may be removed. */
  overridesDeleted(overridesKey: string): string {
    return overridesKey.replace(":o:{", ":o-deleted:{");
  }

  /** Change stream. It shares its slot with the history and the projection state, because one script changes all three. */
  changes(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:changes:{${workspaceId}}`;
  }

  /** Hash of entries by number. In contrast to a range read of a stream, an HMGET can only return as much as its arguments name. */
  history(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:history:{${workspaceId}}`;
  }

  projectionState(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:state:{${workspaceId}}`;
  }

  /** Hash of the projection's workspaces, each with its active projection id. */
  knownWorkspaces(): string {
    return `${this.#prefix}:${GLOBAL}:workspaces:{${GLOBAL}}`;
  }

  /** Counter of a limit. `counted` is the result of `countedHash`. */
  counter(workspaceId: string, counted: string, durationMs: number): string {
    return `${this.#prefix}:${workspaceId}:rl:{${counted}}:${durationMs}`;
  }

  credits(workspaceId: string, keyId: string): string {
    return `${this.#prefix}:${workspaceId}:cr:{${keyId}}`;
  }

  /** Pattern that matches the credits of every workspace. */
  everyCreditsPattern(): string {
    return `${this.#prefix}:*:cr:{*`;
  }

  creditsDirty(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:cr-dirty`;
  }

  creditsLoad(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:cr-load`;
  }

  events(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:events`;
  }

  /** Bytes of events that a workspace may still add. The key shares the slot of the events, so that one script reads and writes both. */
  eventsQuota(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:events-quota:{${this.events(workspaceId)}}`;
  }

  /** Lease of the process that distributes the event quotas. */
  eventsKeeper(): string {
    return `${this.#prefix}:${GLOBAL}:events-keeper`;
  }

  pods(workspaceId: string, policyId: string): string {
    return `${this.#prefix}:${workspaceId}:pods:{${policyId}}`;
  }

  /** Reports of a pod, if the pod's user may not write other reports. */
  podsOwn(workspaceId: string, policyId: string, podId: string): string {
    return `${this.pods(workspaceId, policyId)}:${podId}`;
  }

  /** Sorted set of the pods that enforce the policy, by last-seen time. Each pod may write it. */
  podsAlive(workspaceId: string, policyId: string): string {
    return `${this.#prefix}:${workspaceId}:pods-alive:{${policyId}}`;
  }

  /** Sorted set of the pods that have their own Redis user, by expiry. Only the control plane writes it. */
  podsIssued(workspaceId: string, policyId: string): string {
    return `${this.#prefix}:${workspaceId}:pods-issued:{${policyId}}`;
  }

  /** Sorted set of the gates' users, by expiry. */
  gateUsers(): string {
    return `${this.#prefix}:${GLOBAL}:gate-users`;
  }
}

/**
 * SHA-256 in hex of (kind, scope, identifier). The hashed text begins with the length of the scope, so different triples never have the
 * same text.
 */
export function countedHash(kind: string, scope: string, identifier: string): string {
  return createHash("sha256").update(`${kind}:${scope.length}:${scope}:${identifier}`).digest("hex");
}
