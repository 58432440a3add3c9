import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { defineScript, runScript } from "../redis/script.ts";
import type { CreditCounter, CreditRef, CreditStore } from "./contract.ts";

/*
 * The hash {rev, granted, spent, open}. Scripts, because spenders write `spent` at the same time: what is read and what is
 * written must be one step.
 */

/**
 * KEYS: the credits. ARGV: rev, granted, spent.
 * A lower rev is refused: a slow loader must not bring an old number back. The same one keeps the greater `spent`.
 */
const LOAD = defineScript(`
local known = redis.call('HMGET', KEYS[1], 'rev', 'spent')
local rev, spent = tonumber(ARGV[1]), tonumber(ARGV[3])
if known[1] then
  if tonumber(known[1]) > rev then return 0 end
  if tonumber(known[1]) == rev then spent = math.max(spent, tonumber(known[2])) end
end
redis.call('HSET', KEYS[1], 'rev', ARGV[1], 'granted', ARGV[2], 'spent', string.format('%.0f', spent), 'open', '1')
return 1
`);

/** KEYS: the credits. Closes what is there, and gives it; a counter that is not there must not come to be by this. */
const SUSPEND = defineScript(`
local known = redis.call('HMGET', KEYS[1], 'rev', 'granted', 'spent')
if not known[1] then return false end
redis.call('HSET', KEYS[1], 'open', '0')
return known
`);

/** KEYS: the credits, the set of dirty ones. ARGV: the key's id, rev, spent. Clears the mark unless they have moved on. */
const CLEAR_DIRTY = defineScript(`
local known = redis.call('HMGET', KEYS[1], 'rev', 'spent')
if known[1] and (tonumber(known[1]) ~= tonumber(ARGV[2]) or tonumber(known[2]) ~= tonumber(ARGV[3])) then return 0 end
return redis.call('SREM', KEYS[2], ARGV[1])
`);

const SCAN_COUNT = 500;

export class RedisCreditStore implements CreditStore {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, keys: RedisKeys) {
    this.#client = client;
    this.#keys = keys;
  }

  async load(ref: CreditRef, { rev, granted, spent }: CreditCounter): Promise<void> {
    await runScript(this.#client, LOAD, 1, [this.#key(ref), rev, granted, spent]);
  }

  async suspend(ref: CreditRef): Promise<CreditCounter | undefined> {
    return readCounter((await runScript(this.#client, SUSPEND, 1, [this.#key(ref)])) as string[] | null);
  }

  async read(ref: CreditRef): Promise<CreditCounter | undefined> {
    return readCounter(await this.#client.hmget(this.#key(ref), "rev", "granted", "spent"));
  }

  async remove(ref: CreditRef): Promise<void> {
    const { workspaceId, keyId } = ref;
    await Promise.all([
      this.#client.del(this.#key(ref)),
      this.#client.srem(this.#keys.creditsDirty(workspaceId), keyId),
    ]);
  }

  async listDirty(workspaceId: string, max: number): Promise<Array<{ ref: CreditRef; counter: CreditCounter }>> {
    // At random, so that keys whose mark cannot be cleared yet do not stand in the way of the others.
    const keyIds = await this.#client.srandmember(this.#keys.creditsDirty(workspaceId), max);
    const counters = await Promise.all(keyIds.map((keyId) => this.read({ workspaceId, keyId })));
    const listed: Array<{ ref: CreditRef; counter: CreditCounter }> = [];
    const lost: string[] = [];
    for (const [i, keyId] of keyIds.entries()) {
      const counter = counters[i];
      if (counter !== undefined) listed.push({ ref: { workspaceId, keyId }, counter });
      else lost.push(keyId);
    }
    if (lost.length > 0) await this.#client.srem(this.#keys.creditsDirty(workspaceId), ...lost);
    return listed;
  }

  async clearDirty(ref: CreditRef, seen: CreditCounter): Promise<void> {
    const dirty = this.#keys.creditsDirty(ref.workspaceId);
    if (!isCluster(this.#client)) {
      await runScript(this.#client, CLEAR_DIRTY, 2, [this.#key(ref), dirty, ref.keyId, seen.rev, seen.spent]);
      return;
    }
    // The two keys are in two slots. A spender marks after it has spent, so whoever spends after our reading marks again.
    await this.#client.srem(dirty, ref.keyId);
    const now = await this.read(ref);
    if (now !== undefined && (now.rev !== seen.rev || now.spent !== seen.spent)) {
      await this.#client.sadd(dirty, ref.keyId);
    }
  }

  async closeAll(workspaceId: string): Promise<void> {
    const nodes = isCluster(this.#client) ? this.#client.nodes("master") : [this.#client];
    for (const node of nodes) {
      let cursor = "0";
      do {
        const [next, keys] = await node.scan(
          cursor,
          "MATCH",
          this.#keys.creditsPattern(workspaceId),
          "COUNT",
          SCAN_COUNT,
        );
        cursor = next;
        await Promise.all(keys.map((key) => runScript(node, SUSPEND, 1, [key])));
      } while (cursor !== "0");
    }
  }

  async takeLoadRequests(workspaceId: string, max: number): Promise<CreditRef[]> {
    const keyIds = await this.#client.spop(this.#keys.creditsLoad(workspaceId), max);
    return keyIds.map((keyId) => ({ workspaceId, keyId }));
  }

  async close(): Promise<void> {}

  #key({ workspaceId, keyId }: CreditRef): string {
    return this.#keys.credits(workspaceId, keyId);
  }
}

function readCounter(fields: readonly (string | null)[] | null): CreditCounter | undefined {
  const [rev, granted, spent] = fields ?? [];
  if (rev == null) return undefined;
  return { rev: Number(rev), granted: Number(granted), spent: Number(spent) };
}
