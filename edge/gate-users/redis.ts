import { createHash, randomBytes } from "node:crypto";
import type { Redis } from "ioredis";
import { podAclRules } from "../redis/acl.ts";
import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript, within } from "../redis/script.ts";
import type { GateRef, GateUser, GateUsers } from "./contract.ts";

/*
 * Redis users do not expire, so a sorted set records the expiry of each. The entry is written before the user is created, so a user without
 * an entry shows that Redis has lost data. A node keeps its users in memory, apart from the data, so it loses them if it restarts without
 * an ACL file. The node then rejects the gates, which request credentials again, and the api-server creates their users on all nodes again.
 */

const VALID_MS = 6 * 3_600_000;
/**
 * Time within which every running gate renews its user: gates renew it within the first hour (sidecar/credentials.ts), and have a second
 * hour for retries.
 */
const RENEWED_MS = 2 * 3_600_000;
/** Time within which all gates renew their users after an outage of the api-servers. */
const ALL_RENEWED_MS = 5 * 60_000;
const RESPONSE_MS_MAX = 3_000;
const SWEPT_MAX = 100;
/** Maximum length of the name of a user or pod: `namespace/name`, each of at most 253 bytes. */
const NAME_BYTES_MAX = 512;

/** Stores a user's expiry. KEYS: the expiries of users. ARGV: a user, its validity in ms. Reply: 1. */
export const KEEP_TIME = defineScript(
  { keys: 1, args: 2, argBytes: NAME_BYTES_MAX },
  `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
return 1
`,
);

/** Records a pod whose reports are to be listed, and removes expired pods. KEYS, ARGV and reply as in KEEP_TIME. */
export const NOTE_POD = defineScript(
  { keys: 1, args: 2, argBytes: NAME_BYTES_MAX },
  `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('ZADD', KEYS[1], string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return 1
`,
);

/** Stores a user's expiry like KEEP_TIME, unless one is already recorded. */
export const KEEP_FIRST_TIME = defineScript(
  { keys: 1, args: 2, argBytes: NAME_BYTES_MAX },
  `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZADD', KEYS[1], 'NX', string.format('%.0f', now + tonumber(ARGV[2])), ARGV[1])
return 1
`,
);

/**
 * Removes users from the set that have expired, or that their gates did not renew although others were renewed at least 2 h later. Renewals
 * in the last few minutes do not count as evidence, because they may be the first ones after an outage. KEYS: the expiries of users. ARGV:
 * maximum users; validity of a user, renewal interval, and the age below which a renewal does not count as evidence, in ms. Reply: the
 * users.
 */
export const TAKE_OVER = defineScript(
  { keys: 1, args: 4 },
  `
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local valid, renewed, recent = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local over = now
local proof = redis.call('ZREVRANGEBYSCORE', KEYS[1], string.format('%.0f', now + valid - recent), '-inf', 'WITHSCORES', 'LIMIT', '0', '1')
if proof[2] then over = math.max(over, tonumber(proof[2]) - renewed) end
local users = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', over), 'LIMIT', '0', ARGV[1])
if #users > 0 then redis.call('ZREM', KEYS[1], unpack(users)) end
return users
`,
);

/** A Redis in which gates have users. A Redis only for events grants them other permissions. */
export interface UserStore {
  readonly client: RedisClient;
  readonly store: "all" | "events";
}

export class RedisGateUsers implements GateUsers {
  readonly #stores: readonly UserStore[];
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #prefix: string;

  /** The first store records the expiries. The caller owns the connections of all stores and closes them. */
  constructor(stores: readonly [UserStore, ...UserStore[]], { keys, prefix }: { keys: RedisKeys; prefix: string }) {
    this.#stores = stores;
    this.#client = stores[0].client;
    this.#keys = keys;
    this.#prefix = prefix;
  }

  async issue(ref: GateRef): Promise<GateUser> {
    const username = `${this.#userPrefix()}${userDigest(ref)}`;
    const password = randomBytes(32).toString("base64url");
    const { workspaceId, policyId, podId } = ref;
    await runScript(this.#client, KEEP_TIME, 1, [this.#keys.gateUsers(), username, VALID_MS]);
    const digest = createHash("sha256").update(password).digest("hex");
    await this.#onAllNodes(({ store }) => {
      const rules = podAclRules({ workspaceId, prefix: this.#prefix, store, gate: { policyId, podId } });
      return ["SETUSER", username, ...rules, `#${digest}`];
    });
    await runScript(this.#client, NOTE_POD, 1, [this.#keys.podsIssued(workspaceId, policyId), podId, VALID_MS]);
    return { username, password, validMs: VALID_MS };
  }

  async sweep(): Promise<number> {
    const key = this.#keys.gateUsers();
    for (const user of await this.#unknownUsers()) {
      await runScript(this.#client, KEEP_FIRST_TIME, 1, [key, user, VALID_MS]);
    }
    const over = (await runScript(this.#client, TAKE_OVER, 1, [
      key,
      SWEPT_MAX,
      VALID_MS,
      RENEWED_MS,
      ALL_RENEWED_MS,
    ])) as string[];
    if (over.length > 0) await this.#onAllNodes(() => ["DELUSER", ...over]);
    return over.length;
  }

  async #unknownUsers(): Promise<string[]> {
    const users = new Set<string>();
    for (const { client } of this.#stores) {
      for (const node of nodesOf(client)) {
        const names = (await within(RESPONSE_MS_MAX, node.call("ACL", "USERS"))) as string[];
        for (const name of names) if (name.startsWith(this.#userPrefix())) users.add(name);
      }
    }
    const known = new Set(await this.#client.zrange(this.#keys.gateUsers(), "0", "-1"));
    return [...users].filter((user) => !known.has(user)).slice(0, SWEPT_MAX);
  }

  /** Runs a command on all nodes, because a user must exist on each of them. Throws if one of them fails. */
  async #onAllNodes(command: (store: UserStore) => readonly string[]): Promise<void> {
    const sent = this.#stores.flatMap((store) =>
      nodesOf(store.client).map((node) => within(RESPONSE_MS_MAX, node.call("ACL", ...command(store)))),
    );
    await Promise.all(sent);
  }

  #userPrefix(): string {
    return `${this.#prefix}-gate-`;
  }
}

/** Returns all nodes. Replicas are included, because a replica may be promoted. */
const nodesOf = (client: RedisClient): Redis[] => (isCluster(client) ? client.nodes("all") : [client]);

const userDigest = ({ workspaceId, policyId, podUid }: GateRef): string =>
  createHash("sha256").update([workspaceId, policyId, podUid].join("\n")).digest("hex").slice(0, 32);
