import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { DeadlineClock } from "../redis/deadline-clock.ts";
import { findExisting } from "../redis/find-existing.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { readNumbers, runScript, runScripts, type Script, type ScriptCall, within } from "../redis/script.ts";
import type { CountedKey, CreditCounter, CreditRef, CreditStore, Found } from "./contract.ts";
import { CLEAR_DIRTY, LOAD, READ, REMOVE, SUSPEND, TAKE_IDS } from "./scripts.ts";

/** Timeout of a call. It is short, because the caller keeps a row locked while it waits. */
const TIMEOUT_MS = 1_000;
/** Reply of a script that ran after its deadline and did nothing. */
const TOO_LATE = -1;
const SCAN_COUNT = 2_000;
const ID_LENGTH_MAX = 64;
const ID = /^[A-Za-z0-9_-]+$/;
/** Placeholder for a missing counter; it differs from every stored counter. */
const NO_COUNTER: CreditCounter = { rev: -1, granted: 0, spent: -1 };

export class RedisCreditStore implements CreditStore {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;

  readonly #clock: DeadlineClock;

  /** The caller owns the connection and closes it. */
  constructor(client: RedisClient, keys: RedisKeys, clock: DeadlineClock) {
    this.#client = client;
    this.#keys = keys;
    this.#clock = clock;
  }

  async load(counted: readonly CountedKey[]): Promise<void> {
    await this.#runInTime((deadlineMs) =>
      counted.map(({ ref, counter: { rev, granted, spent } }) => ({
        script: LOAD,
        keys: [this.#key(ref)],
        args: [rev, granted, spent, deadlineMs],
      })),
    );
  }

  async suspend(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>> {
    return (await this.#runAll(refs.map((ref) => this.#call(SUSPEND, ref)))).map(readCounter);
  }

  async read(refs: readonly CreditRef[]): Promise<Array<CreditCounter | undefined>> {
    return (await this.#runAll(refs.map((ref) => this.#call(READ, ref)))).map(readCounter);
  }

  async remove(refs: readonly CreditRef[]): Promise<void> {
    await this.#runInTime((deadlineMs) =>
      refs.map((ref) => ({ script: REMOVE, keys: [this.#key(ref)], args: [deadlineMs] })),
    );
    await this.clearDirty(refs.map((ref) => ({ ref, counter: NO_COUNTER })));
  }

  findDirtyWorkspaces(workspaceIds: readonly string[]): Promise<string[]> {
    return this.#findWith(workspaceIds, (id) => this.#keys.creditsDirty(id));
  }

  async listDirty(workspaceId: string, max: number): Promise<Found<CountedKey>> {
    const set = this.#keys.creditsDirty(workspaceId);
    const { ids, refused, isMore } = await this.#takeIds(set, { max, leaves: true });
    const refs = ids.filter(isKeyId).map((keyId) => ({ workspaceId, keyId }));
    const counters = await this.read(refs);
    const items: CountedKey[] = [];
    const lost: CountedKey[] = [];
    for (const [i, ref] of refs.entries()) {
      const counter = counters[i];
      if (counter !== undefined) items.push({ ref, counter });
      else lost.push({ ref, counter: NO_COUNTER });
    }
    if (lost.length > 0) await this.clearDirty(lost);
    const strange = ids.filter((id) => !isKeyId(id));
    if (strange.length > 0) await within(TIMEOUT_MS, this.#client.srem(set, ...strange));
    return { items, refused: refused + strange.length, isMore };
  }

  async clearDirty(seen: readonly CountedKey[]): Promise<void> {
    if (isCluster(this.#client)) {
      await Promise.all(seen.map((counted) => this.#clearOnCluster(counted)));
      return;
    }
    await this.#runAll(
      seen.map(({ ref, counter: { rev, spent } }) => ({
        script: CLEAR_DIRTY,
        keys: [this.#key(ref), this.#keys.creditsDirty(ref.workspaceId)],
        args: [ref.keyId, rev, spent],
      })),
    );
  }

  async closeAll(): Promise<void> {
    const nodes = isCluster(this.#client) ? this.#client.nodes("master") : [this.#client];
    for (const node of nodes) {
      let cursor = "0";
      do {
        const page = node.scan(cursor, "MATCH", this.#keys.everyCreditsPattern(), "COUNT", SCAN_COUNT);
        const [next, keys] = await within(TIMEOUT_MS, page);
        cursor = next;
        if (keys.length > 0) {
          const calls = keys.map((key) => ({ script: SUSPEND, keys: [key], args: [] }));
          await within(TIMEOUT_MS, runScripts(node, calls));
        }
      } while (cursor !== "0");
    }
  }

  findAskingWorkspaces(workspaceIds: readonly string[]): Promise<string[]> {
    return this.#findWith(workspaceIds, (id) => this.#keys.creditsLoad(id));
  }

  async takeLoadRequests(workspaceId: string, max: number): Promise<Found<CreditRef>> {
    const set = this.#keys.creditsLoad(workspaceId);
    const { ids, refused, isMore } = await this.#takeIds(set, { max, leaves: false });
    const items = ids.filter(isKeyId).map((keyId) => ({ workspaceId, keyId }));
    return { items, refused: refused + ids.length - items.length, isMore };
  }

  async close(): Promise<void> {}

  /**
   * The dirty set and the counter are in different slots, so credits may be spent between the two calls. Whoever spends adds the key to the
   * dirty set afterwards, so the key is then dirty again.
   */
  async #clearOnCluster({ ref, counter: seen }: CountedKey): Promise<void> {
    const dirty = this.#keys.creditsDirty(ref.workspaceId);
    await within(TIMEOUT_MS, this.#client.srem(dirty, ref.keyId));
    const [now] = await this.read([ref]);
    if (now !== undefined && (now.rev !== seen.rev || now.spent !== seen.spent)) {
      await within(TIMEOUT_MS, this.#client.sadd(dirty, ref.keyId));
    }
  }

  async #takeIds(set: string, { max, leaves }: { max: number; leaves: boolean }) {
    const argv = [set, max, ID_LENGTH_MAX, leaves ? 1 : 0];
    const reply = (await within(TIMEOUT_MS, runScript(this.#client, TAKE_IDS, 1, argv))) as [
      refused: number,
      left: number,
      ...ids: string[],
    ];
    const [refused, left, ...ids] = reply;
    return { ids, refused, isMore: left > 0 };
  }

  async #findWith(workspaceIds: readonly string[], keyOf: (workspaceId: string) => string): Promise<string[]> {
    const exists = await within(TIMEOUT_MS, findExisting(this.#client, workspaceIds.map(keyOf)));
    return workspaceIds.filter((_, i) => exists[i]);
  }

  #call(script: Script, ref: CreditRef) {
    return { script, keys: [this.#key(ref)], args: [] };
  }

  /** Runs scripts that, after their deadline, reply -1 and do nothing. */
  async #runInTime(callsUntil: (deadlineMs: number) => readonly ScriptCall[]): Promise<void> {
    const dueMs = performance.now() + TIMEOUT_MS;
    await this.#clock.inTime(this.#client, { dueMs }, async (deadlineMs) => {
      const replies = await within(dueMs - performance.now(), runScripts(this.#client, callsUntil(deadlineMs)));
      return replies.includes(TOO_LATE) ? undefined : replies;
    });
  }

  async #runAll(calls: readonly ScriptCall[]): Promise<unknown[]> {
    return calls.length === 0 ? [] : within(TIMEOUT_MS, runScripts(this.#client, calls));
  }

  #key({ workspaceId, keyId }: CreditRef): string {
    return this.#keys.credits(workspaceId, keyId);
  }
}

const isKeyId = (text: string): boolean => ID.test(text);

/** Parses the reply of the scripts: integers or nil. */
function readCounter(reply: unknown): CreditCounter | undefined {
  if (reply === null) return undefined;
  const [rev = 0, granted = 0, spent = 0] = readNumbers(reply);
  return { rev, granted, spent };
}
