import { createHash } from "node:crypto";
import { CENTRAL_ONLY_KINDS, type RecordKind, type RecordRef } from "../projection/contract.ts";

/*
 * The names of everything that is kept in Redis. Every key begins with `<prefix>:<workspace>:`, so that one Redis user
 * per workspace can be confined to its pattern; what is in braces decides the slot on a cluster.
 */

export const DEFAULT_PREFIX = "ps";

/** Stands in for the workspace in the keys of the feed that the api-server's replicas follow. */
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
  policy: "p",
};

/** The field of all overrides with a `*`. A field of an exact identifier begins with `=`, so that the two never meet. */
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

  /** A sorted set beside the overrides of a namespace: fields that are tombstones, by the time they may be removed. */
  overridesGone(overridesKey: string): string {
    return overridesKey.replace(":o:{", ":o-gone:{");
  }

  /** Two keys in one slot: one script writes an entry and moves the head. */
  changes(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:changes:{${workspaceId}}`;
  }

  mark(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:mark:{${workspaceId}}`;
  }

  /** A hash: the workspaces of the projection, each with the projection id that is in force for it. */
  knownWorkspaces(): string {
    return `${this.#prefix}:${CENTRAL}:workspaces:{${CENTRAL}}`;
  }

  /** `counted` is the SHA-256 in hex of what is counted together. */
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

  /** How many bytes may be added to the events: in their slot, so that one script reads and writes both. */
  eventsRoom(workspaceId: string): string {
    return `${this.#prefix}:${workspaceId}:events-room:{${this.events(workspaceId)}}`;
  }

  /** Which process shares out the room for events. */
  eventsKeeper(): string {
    return `${this.#prefix}:${CENTRAL}:events-keeper`;
  }

  pods(workspaceId: string, policyId: string): string {
    return `${this.#prefix}:${workspaceId}:pods:{${policyId}}`;
  }
}

/** SHA-256 in hex of (kind, scope, identifier). The length stands before the scope, so that no two triples run into one. */
export function countedHash(kind: string, scope: string, identifier: string): string {
  return createHash("sha256").update(`${kind}:${scope.length}:${scope}:${identifier}`).digest("hex");
}
