import { createHash } from "node:crypto";
import { CENTRAL_ONLY_KINDS, type RecordKind, type RecordRef } from "../records.ts";

/*
 * The names of all keys in Redis. Every key begins with `<prefix>:<workspace>:`, so that the Redis user of a workspace can be limited
 * to its pattern; the part in braces decides the slot on a cluster.
 */

export const DEFAULT_PREFIX = "ps";

/** Takes the place of the workspace in the keys of the feed that the api-servers follow. */
export const CENTRAL = "_central";

/** Where a record is kept: a string of its own, or a field of the overrides of its namespace. */
export interface RecordPlace {
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

/** The field of all overrides with a `*`. The field of an exact identifier begins with `=`, so the two never collide. */
const PATTERNS_FIELD = "*";

export class RedisKeys {
  readonly #prefix: string;

  constructor(prefix: string = DEFAULT_PREFIX) {
    this.#prefix = prefix;
  }

  /** Throws for kinds that are never written to a store which pods can read. */
  record(ref: RecordRef): RecordPlace {
    if (CENTRAL_ONLY_KINDS.has(ref.kind)) throw new Error(`records of kind ${ref.kind} are not kept in Redis`);
    const base = `${this.#prefix}:${ref.workspaceId}`;
    if (ref.kind === "workspace") return { key: `${base}:w` };
    if (ref.kind === "overridePatterns") return { key: `${base}:o:{${ref.id}}`, field: PATTERNS_FIELD };
    if (ref.kind === "override") {
      const slash = ref.id.indexOf("/");
      return { key: `${base}:o:{${ref.id.slice(0, slash)}}`, field: `=${ref.id.slice(slash + 1)}` };
    }
    return { key: `${base}:${RECORD_LETTERS[ref.kind]}:{${ref.id}}` };
  }

  /** A sorted set for each hash of overrides: the fields that are tombstones, by the time at which they may be removed. */
  overridesGone(overridesKey: string): string {
    return overridesKey.replace(":o:{", ":o-gone:{");
  }

  /** Two keys in one slot: one script appends an entry and increases the head. */
  changes(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:changes:{${workspaceId}}`;
  }

  mark(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:mark:{${workspaceId}}`;
  }

  /** A hash: the workspaces of the projection, each with the projection id in force for it. */
  knownWorkspaces(): string {
    return `${this.#prefix}:${CENTRAL}:workspaces:{${CENTRAL}}`;
  }

  /** `counted` is the result of `countedHash`. */
  counter(workspaceId: string, counted: string, durationMs: number): string {
    return `${this.#prefix}:${workspaceId}:rl:{${counted}}:${durationMs}`;
  }

  credits(workspaceId: string, keyId: string): string {
    return `${this.#prefix}:${workspaceId}:cr:{${keyId}}`;
  }

  /** Matches the credits of every workspace. */
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

  /** How many bytes of events may be added. In the slot of the events, so that one script reads and writes both. */
  eventsRoom(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:events-room:{${this.events(workspaceId)}}`;
  }

  /** Names the process that shares out the room for events. */
  eventsKeeper(): string {
    return `${this.#prefix}:${CENTRAL}:events-keeper`;
  }

  pods(workspaceId: string, policyId: string): string {
    return `${this.#prefix}:${workspaceId}:pods:{${policyId}}`;
  }

  /** The report of a pod whose user may write no other. */
  podsOwn(workspaceId: string, policyId: string, podId: string): string {
    return `${this.pods(workspaceId, policyId)}:${podId}`;
  }

  /** A sorted set: the pods that enforce the policy, by when they were last seen. Each pod may write it. */
  podsAlive(workspaceId: string, policyId: string): string {
    return `${this.#prefix}:${workspaceId}:pods-alive:{${policyId}}`;
  }

  /** A sorted set: the pods that have such a user, by when it ends. Only the centre writes it. */
  podsIssued(workspaceId: string, policyId: string): string {
    return `${this.#prefix}:${workspaceId}:pods-issued:{${policyId}}`;
  }

  /** A sorted set: the users of gates, by when they end. */
  gateUsers(): string {
    return `${this.#prefix}:${CENTRAL}:gate-users`;
  }
}

/** SHA-256 in hex of (kind, scope, identifier). The length before the scope keeps different triples from being equal as text. */
export function countedHash(kind: string, scope: string, identifier: string): string {
  return createHash("sha256").update(`${kind}:${scope.length}:${scope}:${identifier}`).digest("hex");
}
