import { isCluster, type RedisClient } from "../redis/connect.ts";
import { CENTRAL, type RedisKeys } from "../redis/keys.ts";
import { runScript, runScripts, type ScriptCall } from "../redis/script.ts";
import {
  CENTRAL_ONLY_KINDS,
  ProjectionChanged,
  REFERRED_KINDS,
  type RecordWrite,
  type RecordWriter,
  type StoreState,
} from "./contract.ts";
import { ANNOUNCE, BEGIN, CHANGES_MAX, COMPLETE, HEARTBEAT, SET_FIELD, SET_RECORD } from "./scripts.ts";

/** So long a tombstone keeps a slow relay from bringing a record back. */
export const TOMBSTONE_KEPT_MS = 24 * 60 * 60 * 1000;

const WRITES_PER_BATCH = 200;
const ENTRIES_PER_CALL = 500;

export class RedisRecordWriter implements RecordWriter {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #changesMax: number;

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, keys: RedisKeys, options: { changesMax?: number } = {}) {
    this.#client = client;
    this.#keys = keys;
    this.#changesMax = options.changesMax ?? CHANGES_MAX;
  }

  async state(): Promise<StoreState> {
    const fields = ["projectionId", "complete", "head", "version"] as const;
    const [mark, runId] = await Promise.all([this.#client.hmget(this.#keys.mark(CENTRAL), ...fields), this.#runId()]);
    const [projectionId, complete, head, version] = mark;
    return {
      projectionId: projectionId ?? undefined,
      complete: complete === "1",
      head: Number(head ?? 0),
      version: Number(version ?? 0),
      runId,
    };
  }

  async begin(projectionId: string, workspaceIds: readonly string[]): Promise<void> {
    if (!/^\S{1,64}$/.test(projectionId)) throw new Error("a projection id is 1 to 64 characters without spaces");
    const keys = this.#keys;
    const central = [keys.mark(CENTRAL), keys.changes(CENTRAL), keys.knownWorkspaces()];
    await runScript(this.#client, BEGIN, 3, [...central, projectionId, this.#changesMax]);
    await this.#beginWorkspaces(projectionId, workspaceIds);
  }

  async write({ projectionId, version, writes }: Parameters<RecordWriter["write"]>[0]): Promise<void> {
    const byWorkspace = Map.groupBy(
      writes.filter(({ ref }) => !CENTRAL_ONLY_KINDS.has(ref.kind)),
      ({ ref }) => ref.workspaceId,
    );
    await this.#adoptNew(projectionId, [...byWorkspace.keys()]);
    for (let at = 0; at < writes.length; at += WRITES_PER_BATCH) {
      const batch = writes.slice(at, at + WRITES_PER_BATCH).filter(({ ref }) => !CENTRAL_ONLY_KINDS.has(ref.kind));
      const calls = batch.map((write) => this.#setRecord(projectionId, version, write));
      refuseOther(projectionId, await runScripts(this.#client, calls));
    }
    // Announced only now: a reader that is told of a change must find it.
    const calls = [...byWorkspace].flatMap(([id, ofWorkspace]) =>
      this.#announce(id, projectionId, version, ofWorkspace),
    );
    calls.push(...this.#announce(CENTRAL, projectionId, version, writes));
    refuseOther(projectionId, await runScripts(this.#client, calls));
  }

  async complete(projectionId: string, workspaceIds: readonly string[]): Promise<void> {
    const complete = (id: string) => ({ script: COMPLETE, keys: [this.#keys.mark(id)], args: [projectionId] });
    refuseOther(projectionId, await runScripts(this.#client, workspaceIds.map(complete)));
    const known = await this.#client.smembers(this.#keys.knownWorkspaces());
    const states = await Promise.all(known.map((id) => this.#client.hget(this.#keys.mark(id), "complete")));
    if (states.some((state) => state !== "1")) return;
    refuseOther(projectionId, await runScripts(this.#client, [complete(CENTRAL)]));
  }

  async nowMs(): Promise<number> {
    const [seconds, microseconds] = await this.#client.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  async heartbeat(projectionId: string, asOfMs: number, workspaceIds: readonly string[]): Promise<void> {
    await this.#adoptNew(projectionId, workspaceIds);
    const calls = [...workspaceIds, CENTRAL].map((id) => ({
      script: HEARTBEAT,
      keys: [this.#keys.mark(id), this.#keys.changes(id)],
      args: [projectionId, this.#changesMax, asOfMs],
    }));
    for (let at = 0; at < calls.length; at += WRITES_PER_BATCH) {
      refuseOther(projectionId, await runScripts(this.#client, calls.slice(at, at + WRITES_PER_BATCH)));
    }
  }

  /**
   * A workspace that came to be after the projection began has no mark yet. It gets one, complete when the projection is:
   * all that it has was written as it came to be. But one that was known and has lost its mark has lost its records too.
   */
  async #adoptNew(projectionId: string, workspaceIds: readonly string[]): Promise<void> {
    const read = (id: string) => this.#client.hget(this.#keys.mark(id), "projectionId");
    const [central, ...marks] = await Promise.all([CENTRAL, ...workspaceIds].map(read));
    if (central !== projectionId) throw new ProjectionChanged(`the store does not hold projection ${projectionId}`);
    const other = workspaceIds.find((_, i) => marks[i] !== null && marks[i] !== projectionId);
    if (other !== undefined) throw new ProjectionChanged(`the store holds another projection of workspace ${other}`);
    const unmarked = workspaceIds.filter((_, i) => marks[i] === null);
    if (unmarked.length === 0) return;
    const known = await this.#client.smismember(this.#keys.knownWorkspaces(), ...unmarked);
    const lost = unmarked.find((_, i) => known[i] === 1);
    if (lost !== undefined) throw new ProjectionChanged(`the store has lost workspace ${lost}`);
    const complete = await this.#client.hget(this.#keys.mark(CENTRAL), "complete");
    await this.#beginWorkspaces(projectionId, unmarked);
    if (complete === "1") await this.complete(projectionId, unmarked);
  }

  async #beginWorkspaces(projectionId: string, workspaceIds: readonly string[]): Promise<void> {
    if (workspaceIds.length === 0) return;
    // Known first: should this process die in between, the workspace counts as lost and is projected anew.
    await this.#client.sadd(this.#keys.knownWorkspaces(), ...workspaceIds);
    const begin = (id: string) => ({
      script: BEGIN,
      keys: [this.#keys.mark(id), this.#keys.changes(id)],
      args: [projectionId, this.#changesMax],
    });
    await runScripts(this.#client, workspaceIds.map(begin));
  }

  #setRecord(projectionId: string, version: number, { ref, data }: RecordWrite): ScriptCall {
    const { key, field } = this.#keys.record(ref);
    const json = data === undefined ? "" : JSON.stringify(data);
    // The mark is in another slot, so on a cluster only the check before the writes and the one of the announcement hold.
    const mark = isCluster(this.#client) ? [] : [this.#keys.mark(ref.workspaceId)];
    if (field !== undefined) {
      const keys = [key, this.#keys.overridesGone(key), ...mark];
      return { script: SET_FIELD, keys, args: [projectionId, version, json, TOMBSTONE_KEPT_MS, field] };
    }
    const keptMs = data === undefined && !REFERRED_KINDS.has(ref.kind) ? TOMBSTONE_KEPT_MS : "";
    return { script: SET_RECORD, keys: [key, ...mark], args: [projectionId, version, json, keptMs] };
  }

  #announce(feed: string, projectionId: string, version: number, writes: readonly RecordWrite[]): ScriptCall[] {
    const calls: ScriptCall[] = [];
    for (let at = 0; at < writes.length; at += ENTRIES_PER_CALL) {
      const changes = writes.slice(at, at + ENTRIES_PER_CALL);
      const triples = changes.flatMap(({ ref }) => [ref.kind, ref.workspaceId, ref.id]);
      calls.push({
        script: ANNOUNCE,
        keys: [this.#keys.mark(feed), this.#keys.changes(feed)],
        args: [projectionId, this.#changesMax, version, ...triples],
      });
    }
    return calls;
  }

  async #runId(): Promise<string> {
    const nodes = isCluster(this.#client) ? this.#client.nodes("master") : [this.#client];
    const infos = await Promise.all(nodes.map((node) => node.info("server")));
    return infos
      .map((info) => /^run_id:(\w+)/m.exec(info)?.[1] ?? "")
      .sort()
      .join("+");
  }
}

function refuseOther(projectionId: string, replies: readonly unknown[]): void {
  if (replies.includes(-1)) throw new ProjectionChanged(`the store does not hold projection ${projectionId}`);
}
