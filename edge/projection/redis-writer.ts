import { randomBytes } from "node:crypto";
import { POSTGRES_ONLY_KINDS } from "../records.ts";
import { isCluster, type RedisClient, readRunId } from "../redis/connect.ts";
import { GLOBAL, type RedisKeys } from "../redis/keys.ts";
import { runScript, runScripts, runScriptsEach, type ScriptCall } from "../redis/script.ts";
import {
  type BeginOptions,
  jsonOf,
  ProjectionChanged,
  type RecordWrite,
  type RecordWriter,
  type RestartedWorkspaces,
  type StoreState,
  staysForGood,
  TOMBSTONE_KEPT_MS,
} from "./contract.ts";
import {
  ANNOUNCE,
  BEGIN,
  CHANGES_MAX,
  COMPLETE,
  ENTRIES_PER_CALL,
  HEARTBEAT,
  LAGGING_NAMED_MAX,
  RECORDS_PER_CALL,
  SET_FIELD,
  SET_RECORDS,
} from "./scripts.ts";

/*
 * Each workspace has its own projection state, which contains the projection id of its records. This is the id of the complete projection,
 * unless the workspace was restarted separately. Gates of a workspace can write to its part of the store if the ACL allows it, so data
 * there must not make writes for others fail. A call consists of scripts for one workspace each. If a script fails, or the projection state
 * rejects it, only that workspace is restarted. Only api-servers write the global part of the store, so if its projection state does not
 * match, the complete projection is lost.
 */

const CALLS_PER_BATCH = 200;

/** A script call for one workspace, or for the global stream. */
interface OwnedCall extends ScriptCall {
  readonly owner: string;
  /** Expected projection of the stream. Set for a script that replies with the number of the stream's last entry. */
  readonly streamOf?: string;
}

export class RedisRecordWriter implements RecordWriter {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #changesMax: number;
  /** Active projection id of each known workspace. All ids are read again if one turns out to be outdated. */
  #ids = new Map<string, string>();
  /** Last known number of entries in each stream. A stream with fewer entries was rolled back. */
  readonly #rollbacks = new Map<string, { readonly projectionId: string; readonly head: number }>();

  /** Server run id at the time when the store's state was last read. The relay's decisions are based on that state. */
  #runId: string | undefined;

  /** The caller owns the connection and closes it. */
  constructor(client: RedisClient, keys: RedisKeys, options: { changesMax?: number } = {}) {
    this.#client = client;
    this.#keys = keys;
    this.#changesMax = options.changesMax ?? CHANGES_MAX;
  }

  async state(): Promise<StoreState> {
    const fields = ["projectionId", "complete", "head", "version", "asOfMs"] as const;
    const [state, runId] = await Promise.all([
      this.#client.hmget(this.#keys.projectionState(GLOBAL), ...fields),
      readRunId(this.#client),
    ]);
    this.#runId = runId;
    const [projectionId, complete, head, version, asOfMs] = state;
    // Records the current state as the baseline, so that even a new writer detects later rollbacks.
    if (projectionId && this.#headOf(GLOBAL, projectionId) === 0) {
      this.#rollbacks.set(GLOBAL, { projectionId, head: Number(head) });
    }
    return {
      projectionId: projectionId ?? undefined,
      complete: complete === "1",
      head: Number(head ?? 0),
      version: Number(version ?? 0),
      asOfMs: Number(asOfMs ?? 0),
      runId,
    };
  }

  async begin(projectionId: string, workspaceIds: readonly string[], options: BeginOptions = {}): Promise<void> {
    if (!/^\S{1,48}$/.test(projectionId)) throw new Error("a projection id is 1 to 48 characters without spaces");
    const central = [...this.#feedKeys(GLOBAL), this.#keys.knownWorkspaces()];
    await runScript(this.#client, BEGIN, central.length, [
      ...central,
      projectionId,
      ...(await this.#beginArgs(options)),
    ]);
    await this.#readIds();
    const unknown = workspaceIds.filter((id) => !this.#ids.has(id));
    await this.#beginWorkspaces(new Map(unknown.map((id) => [id, projectionId])), options);
  }

  async write({
    projectionId,
    version,
    writes,
    announce = true,
  }: Parameters<RecordWriter["write"]>[0]): Promise<RestartedWorkspaces> {
    const stored = writes.filter(({ ref }) => !POSTGRES_ONLY_KINDS.has(ref.kind));
    const workspaceIds = [...new Set(stored.map(({ ref }) => ref.workspaceId))];
    await this.#joinNew(projectionId, workspaceIds);
    // Keeps the given order, in which records come before those that refer to them, and groups adjacent writes of one kind.
    const toStore = () => runsOf(stored).flatMap((run) => this.#setRecords(version, run));
    const begun = new Set(await this.#run(projectionId, toStore));
    if (!announce) return { begun: [...begun] };
    // Announces the records only after writing them, because a reader that sees a change must find the new record.
    const byWorkspace = Map.groupBy(stored, ({ ref }) => ref.workspaceId);
    const toAnnounce = () => [
      ...[...byWorkspace].flatMap(([id, ofWorkspace]) => this.#announce(id, this.#idOf(id), version, ofWorkspace)),
      ...this.#announce(GLOBAL, projectionId, version, writes),
    ];
    for (const id of await this.#run(projectionId, toAnnounce)) begun.add(id);
    return { begun: [...begun] };
  }

  async complete(projectionId: string, workspaceIds: readonly string[], version = 0): Promise<void> {
    await this.#readIds();
    const ofComplete = workspaceIds.filter((id) => this.#ids.get(id) === projectionId);
    refuseOther(
      projectionId,
      await runScripts(
        this.#client,
        ofComplete.map((id) => this.#complete(id, projectionId, version)),
      ),
    );
    // A restarted workspace completes separately and does not delay the others.
    const rest = [...this.#ids]
      .filter(([id, own]) => own === projectionId && !ofComplete.includes(id))
      .map(([id]) => id);
    const states = await Promise.all(rest.map((id) => this.#client.hget(this.#keys.projectionState(id), "complete")));
    if (states.some((state) => state !== "1")) return;
    refuseOther(projectionId, await runScripts(this.#client, [this.#complete(GLOBAL, projectionId, version)]));
  }

  async completeWorkspace(workspaceId: string): Promise<void> {
    // The script rejects a workspace that was restarted in the meantime. That workspace becomes complete when the relay that restarted it
    // completes it.
    await runScriptsEach(this.#client, [this.#complete(workspaceId, this.#idOf(workspaceId), 0)]);
  }

  async nowMs(): Promise<number> {
    const [seconds, microseconds] = await this.#client.time();
    return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
  }

  async heartbeat(
    projectionId: string,
    asOfMs: number,
    workspaceIds: readonly string[],
    lagging: ReadonlyMap<string, number> = new Map(),
  ): Promise<RestartedWorkspaces & { incomplete: string[] }> {
    await this.#joinNew(projectionId, workspaceIds);
    const runId = await this.#knownRunId();
    // If too many workspaces lag to list them, all workspaces count as lagging.
    const isNamed = lagging.size <= LAGGING_NAMED_MAX;
    const behind = isNamed ? [...lagging].map(([id, ms]) => `${id}=${ms}`).join(" ") : "";
    const globalMs = isNamed ? asOfMs : lagging.values().reduce((a, b) => Math.min(a, b), asOfMs);
    const calls = () => [
      ...workspaceIds.map((id) => this.#heartbeat(id, this.#idOf(id), [lagging.get(id) ?? asOfMs, ""], runId)),
      this.#heartbeat(GLOBAL, projectionId, [globalMs, behind], runId),
    ];
    const incomplete: string[] = [];
    const begun = await this.#run(projectionId, calls, (owner, reply) => {
      if (owner !== GLOBAL && Array.isArray(reply) && reply[1] !== "1") incomplete.push(owner);
    });
    return { begun, incomplete };
  }

  /**
   * Runs scripts for several owners, which are workspaces and the global stream. Returns the workspaces that were restarted because their
   * scripts failed or were rejected. Throws `ProjectionChanged` if the global scripts were rejected. If this writer's cached ids were
   * outdated, calls `calls` again.
   */
  async #run(
    projectionId: string,
    calls: () => OwnedCall[],
    onReply: (owner: string, reply: unknown) => void = () => undefined,
  ): Promise<string[]> {
    let left = calls();
    for (let attempt = 0; ; attempt++) {
      const failed = new Map<string, string>();
      for (let at = 0; at < left.length; at += CALLS_PER_BATCH) {
        const batch = left.slice(at, at + CALLS_PER_BATCH);
        const replies = await runScriptsEach(this.#client, batch);
        for (const [i, call] of batch.entries()) {
          const { owner } = call;
          const problem = this.#problemWith(call, replies[i]);
          if (problem === undefined) onReply(owner, replies[i]);
          else failed.set(owner, problem);
        }
      }
      const central = failed.get(GLOBAL);
      if (central !== undefined) throw new ProjectionChanged(`${central}: projection ${projectionId}`);
      if (failed.size === 0) return [];
      const known = new Map(this.#ids);
      await this.#readIds();
      // Another relay has begun another projection, or the store was emptied.
      for (const id of failed.keys()) if (!belongsTo(projectionId, this.#idOf(id))) throw otherProjection(projectionId);
      const isOld = (id: string) => known.get(id) !== this.#ids.get(id);
      if (attempt === 0 && [...failed.keys()].some(isOld)) {
        left = calls().filter(({ owner }) => failed.has(owner));
        continue;
      }
      const begun = [...failed.keys()];
      // The id is new every time, so that records stored under earlier ids are no longer used.
      const suffix = randomBytes(6).toString("hex");
      // Readers must drop their caches, because changes that they may have missed are not announced again.
      await this.#beginWorkspaces(new Map(begun.map((id) => [id, `${projectionId}.${suffix}`])), { forget: true });
      return begun;
    }
  }

  /** Returns the reason if a reply means that this owner's part of the store is damaged. Throws errors that concern the complete store. */
  #problemWith({ owner, streamOf }: OwnedCall, reply: unknown): string | undefined {
    if (reply instanceof Error) {
      // Wrong types and invalid numbers come from other writers to this workspace; all other errors concern more than one workspace.
      if (owner !== GLOBAL && /^(WRONGTYPE|ERR) /.test(reply.message)) return reply.message;
      throw reply;
    }
    if (reply === -1) return "the store holds another one, or has gone back in time";
    if (streamOf === undefined) return undefined;
    const head = Number(Array.isArray(reply) ? reply[0] : reply);
    const before = this.#headOf(owner, streamOf);
    this.#rollbacks.set(owner, { projectionId: streamOf, head });
    return head <= before ? "the feed has gone back in time" : undefined;
  }

  #headOf(stream: string, projectionId: string): number {
    const known = this.#rollbacks.get(stream);
    return known?.projectionId === projectionId ? known.head : 0;
  }

  /**
   * Adds workspaces created after the projection began. They become complete together with the projection, because each of their records
   * was written when it was created.
   */
  async #joinNew(projectionId: string, workspaceIds: readonly string[]): Promise<void> {
    const isKnown = (id: string) => belongsTo(projectionId, this.#idOf(id));
    if (workspaceIds.every(isKnown)) return;
    await this.#readIds();
    for (const id of workspaceIds) if (this.#ids.has(id) && !isKnown(id)) throw otherProjection(projectionId);
    const unknown = workspaceIds.filter((id) => !this.#ids.has(id));
    if (unknown.length === 0) return;
    const [central, complete] = await this.#client.hmget(
      this.#keys.projectionState(GLOBAL),
      "projectionId",
      "complete",
    );
    if (central !== projectionId) throw otherProjection(projectionId);
    await this.#beginWorkspaces(new Map(unknown.map((id) => [id, projectionId])), {});
    if (complete === "1") await this.complete(projectionId, unknown);
  }

  /** Restarts the projection of workspaces. `ids` maps each workspace to its new projection id. */
  async #beginWorkspaces(ids: ReadonlyMap<string, string>, options: BeginOptions): Promise<void> {
    if (ids.size === 0) return;
    // Registers the id before it writes the projection state. If this process dies in between, the two do not match, and the workspace is
    // restarted again.
    await this.#client.hset(this.#keys.knownWorkspaces(), Object.fromEntries(ids));
    const args = await this.#beginArgs(options);
    const begin = ([id, projectionId]: [string, string]) => ({
      script: BEGIN,
      keys: this.#feedKeys(id),
      args: [projectionId, ...args],
    });
    await runScripts(this.#client, [...ids].map(begin));
    for (const [id, projectionId] of ids) this.#ids.set(id, projectionId);
  }

  async #beginArgs({ forget = false, usePrevious = false }: BeginOptions): Promise<string[]> {
    // On a cluster, records of the previous projection cannot be trusted: each node rolls back separately, and a heartbeat detects a
    // rollback of only one node.
    const mayUsePrevious = usePrevious && !isCluster(this.#client);
    return [flag(forget), flag(mayUsePrevious), await this.#knownRunId()];
  }

  async #readIds(): Promise<void> {
    this.#ids = new Map(Object.entries(await this.#client.hgetall(this.#keys.knownWorkspaces())));
  }

  #idOf(workspaceId: string): string {
    return this.#ids.get(workspaceId) ?? "";
  }

  #feedKeys(stream: string): string[] {
    return [this.#keys.projectionState(stream), this.#keys.changes(stream), this.#keys.history(stream)];
  }

  /** Writes records of one workspace. */
  #setRecords(version: number, writes: readonly RecordWrite[]): OwnedCall[] {
    const [first] = writes;
    if (first === undefined) return [];
    const owner = first.ref.workspaceId;
    // On a cluster, the projection state is in another slot, so it is checked only before the writes and at the announcement.
    const stateKeys = isCluster(this.#client) ? [] : [this.#keys.projectionState(owner)];
    const head = [this.#idOf(owner), version];
    const targets = writes.map((write) => ({ write, json: jsonOf(write), ...this.#keys.record(write.ref) }));
    if (targets[0]?.field !== undefined) {
      return targets.map(({ key, field = "", json = "" }) => ({
        owner,
        script: SET_FIELD,
        keys: [key, this.#keys.overridesDeleted(key), ...stateKeys],
        args: [...head, json, TOMBSTONE_KEPT_MS, field],
      }));
    }
    const args = targets.flatMap(({ write, json }) => {
      const isForGood = json !== undefined || staysForGood(write);
      return [json ?? "", isForGood ? "" : TOMBSTONE_KEPT_MS];
    });
    if (isCluster(this.#client)) {
      return targets.map(({ key }, i) => ({
        owner,
        script: SET_RECORDS,
        keys: [key],
        args: [...head, 1, ...args.slice(2 * i, 2 * i + 2)],
      }));
    }
    return [
      {
        owner,
        script: SET_RECORDS,
        keys: [...targets.map(({ key }) => key), ...stateKeys],
        args: [...head, targets.length, ...args],
      },
    ];
  }

  #announce(stream: string, projectionId: string, version: number, writes: readonly RecordWrite[]): OwnedCall[] {
    const calls: OwnedCall[] = [];
    for (let at = 0; at < writes.length; at += ENTRIES_PER_CALL) {
      const changes = writes.slice(at, at + ENTRIES_PER_CALL);
      const triples = changes.flatMap(({ ref }) => [ref.kind, ref.workspaceId, ref.id]);
      calls.push({
        owner: stream,
        streamOf: projectionId,
        script: ANNOUNCE,
        keys: this.#feedKeys(stream),
        args: [projectionId, this.#changesMax, version, ...triples],
      });
    }
    return calls;
  }

  #heartbeat(
    stream: string,
    projectionId: string,
    [asOfMs, lagging]: readonly [number, string],
    runId: string,
  ): OwnedCall {
    return {
      owner: stream,
      streamOf: projectionId,
      script: HEARTBEAT,
      keys: this.#feedKeys(stream),
      args: [projectionId, asOfMs, lagging, this.#headOf(stream, projectionId), runId],
    };
  }

  #complete(stream: string, projectionId: string, version: number): ScriptCall {
    return { script: COMPLETE, keys: [this.#keys.projectionState(stream)], args: [projectionId, version] };
  }

  /**
   * Returns the run id that Redis had when the relay last read the store's state. After a restart of Redis, this id no longer matches, so
   * heartbeats with the old id make no workspace look fresh.
   */
  async #knownRunId(): Promise<string> {
    this.#runId ??= await readRunId(this.#client);
    return this.#runId;
  }
}

/** Groups adjacent writes of one workspace and storage type, in runs that fit into one call. */
function runsOf(writes: readonly RecordWrite[]): RecordWrite[][] {
  const runs: RecordWrite[][] = [];
  const sort = ({ ref }: RecordWrite) => `${ref.workspaceId} ${ref.kind.startsWith("override")}`;
  let last = "";
  for (const write of writes) {
    const run = runs.at(-1);
    if (run === undefined || run.length >= RECORDS_PER_CALL || sort(write) !== last) runs.push([write]);
    else run.push(write);
    last = sort(write);
  }
  return runs;
}

const flag = (isSet: boolean): string => (isSet ? "1" : "0");

/** Returns whether `id` is the id of the complete projection, or of a restarted workspace in it. */
const belongsTo = (projectionId: string, id: string): boolean =>
  id === projectionId || id.startsWith(`${projectionId}.`);

const otherProjection = (projectionId: string): ProjectionChanged =>
  new ProjectionChanged(`the store does not hold projection ${projectionId}`);

function refuseOther(projectionId: string, replies: readonly unknown[]): void {
  if (replies.includes(-1)) throw otherProjection(projectionId);
}
