import { randomBytes } from "node:crypto";
import { CENTRAL_ONLY_KINDS } from "../records.ts";
import { isCluster, type RedisClient, readRunId } from "../redis/connect.ts";
import { CENTRAL, type RedisKeys } from "../redis/keys.ts";
import { runScript, runScripts, runScriptsEach, type ScriptCall } from "../redis/script.ts";
import {
  type BeginOptions,
  jsonOf,
  ProjectionChanged,
  type RecordWrite,
  type RecordWriter,
  type StoreState,
  staysForGood,
  TOMBSTONE_KEPT_MS,
  type WorkspacesAnew,
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
 * Each workspace has its own mark, with the projection id under which its records are stored. That is the id of the whole
 * projection, unless the workspace began again on its own. Pods of a workspace can write to its part of the store if its ACL allows
 * it, so nothing in that part may make the writes for others fail. A call consists of scripts for one workspace each; when one
 * fails, or its mark refuses it, only that workspace begins again. Only api-servers write the central part: when that does not match,
 * the whole projection is lost.
 */

const CALLS_PER_BATCH = 200;

/** A script call that belongs to one workspace, or to the central feed. */
interface OwnedCall extends ScriptCall {
  readonly owner: string;
  /** Of a script that replies with the number of the feed's last entry: the projection that the feed belongs to. */
  readonly feedOf?: string;
}

export class RedisRecordWriter implements RecordWriter {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #changesMax: number;
  /** The projection id in force for each known workspace; read again when one does not match. */
  #ids = new Map<string, string>();
  /** The number of entries in each feed, as far as this writer knows. A feed with fewer has gone back in time. */
  readonly #heads = new Map<string, { readonly projectionId: string; readonly head: number }>();

  /** The run of the server when its state was last read, which is what the relay decides by. */
  #runId: string | undefined;

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, keys: RedisKeys, options: { changesMax?: number } = {}) {
    this.#client = client;
    this.#keys = keys;
    this.#changesMax = options.changesMax ?? CHANGES_MAX;
  }

  async state(): Promise<StoreState> {
    const fields = ["projectionId", "complete", "head", "version", "asOfMs"] as const;
    const [mark, runId] = await Promise.all([
      this.#client.hmget(this.#keys.mark(CENTRAL), ...fields),
      readRunId(this.#client),
    ]);
    this.#runId = runId;
    const [projectionId, complete, head, version, asOfMs] = mark;
    // A writer that has just started also notices a store that goes back from here on.
    if (projectionId && this.#headOf(CENTRAL, projectionId) === 0) {
      this.#heads.set(CENTRAL, { projectionId, head: Number(head) });
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
    const central = [this.#keys.mark(CENTRAL), this.#keys.changes(CENTRAL), this.#keys.knownWorkspaces()];
    await runScript(this.#client, BEGIN, 3, [...central, projectionId, ...(await this.#beginArgs(options))]);
    await this.#readIds();
    const unknown = workspaceIds.filter((id) => !this.#ids.has(id));
    await this.#beginWorkspaces(new Map(unknown.map((id) => [id, projectionId])), options);
  }

  async write({
    projectionId,
    version,
    writes,
    announce = true,
  }: Parameters<RecordWriter["write"]>[0]): Promise<WorkspacesAnew> {
    const stored = writes.filter(({ ref }) => !CENTRAL_ONLY_KINDS.has(ref.kind));
    const workspaceIds = [...new Set(stored.map(({ ref }) => ref.workspaceId))];
    await this.#joinNew(projectionId, workspaceIds);
    // In the given order, which is that of kinds that refer to one another. Adjacent writes of one kind go together.
    const toStore = () => runsOf(stored).flatMap((run) => this.#setRecords(version, run));
    const begun = new Set(await this.#run(projectionId, toStore));
    if (!announce) return { begun: [...begun] };
    // Announced only now, because a reader that learns of a change must find it.
    const byWorkspace = Map.groupBy(stored, ({ ref }) => ref.workspaceId);
    const toAnnounce = () => [
      ...[...byWorkspace].flatMap(([id, ofWorkspace]) => this.#announce(id, this.#idOf(id), version, ofWorkspace)),
      ...this.#announce(CENTRAL, projectionId, version, writes),
    ];
    for (const id of await this.#run(projectionId, toAnnounce)) begun.add(id);
    return { begun: [...begun] };
  }

  async complete(projectionId: string, workspaceIds: readonly string[], version = 0): Promise<void> {
    await this.#readIds();
    const ofWhole = workspaceIds.filter((id) => this.#ids.get(id) === projectionId);
    refuseOther(
      projectionId,
      await runScripts(
        this.#client,
        ofWhole.map((id) => this.#complete(id, projectionId, version)),
      ),
    );
    // A workspace that began again completes separately, and does not delay the others.
    const rest = [...this.#ids].filter(([id, own]) => own === projectionId && !ofWhole.includes(id)).map(([id]) => id);
    const states = await Promise.all(rest.map((id) => this.#client.hget(this.#keys.mark(id), "complete")));
    if (states.some((state) => state !== "1")) return;
    refuseOther(projectionId, await runScripts(this.#client, [this.#complete(CENTRAL, projectionId, version)]));
  }

  async completeWorkspace(workspaceId: string): Promise<void> {
    // Refused if the workspace began again meanwhile: then it is not complete, and the relay that began it will complete it.
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
  ): Promise<WorkspacesAnew & { incomplete: string[] }> {
    await this.#joinNew(projectionId, workspaceIds);
    const runId = await this.#knownRunId();
    // Too many to name: then the whole feed counts as lagging.
    const isNamed = lagging.size <= LAGGING_NAMED_MAX;
    const behind = isNamed ? [...lagging].map(([id, ms]) => `${id}=${ms}`).join(" ") : "";
    const centralMs = isNamed ? asOfMs : lagging.values().reduce((a, b) => Math.min(a, b), asOfMs);
    const calls = () => [
      ...workspaceIds.map((id) => this.#heartbeat(id, this.#idOf(id), [lagging.get(id) ?? asOfMs, ""], runId)),
      this.#heartbeat(CENTRAL, projectionId, [centralMs, behind], runId),
    ];
    const incomplete: string[] = [];
    const begun = await this.#run(projectionId, calls, (owner, reply) => {
      if (owner !== CENTRAL && Array.isArray(reply) && reply[1] !== "1") incomplete.push(owner);
    });
    return { begun, incomplete };
  }

  /**
   * Runs scripts of several owners and returns the workspaces that began again because their scripts failed or were refused. Throws
   * `ProjectionChanged` when the central ones were refused. Calls `calls` again when the ids that this writer knew were outdated.
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
      const central = failed.get(CENTRAL);
      if (central !== undefined) throw new ProjectionChanged(`${central}: projection ${projectionId}`);
      if (failed.size === 0) return [];
      const known = new Map(this.#ids);
      await this.#readIds();
      // Another relay has begun another projection since, or the store was emptied.
      for (const id of failed.keys()) if (!belongsTo(projectionId, this.#idOf(id))) throw otherProjection(projectionId);
      const isOld = (id: string) => known.get(id) !== this.#ids.get(id);
      if (attempt === 0 && [...failed.keys()].some(isOld)) {
        left = calls().filter(({ owner }) => failed.has(owner));
        continue;
      }
      const begun = [...failed.keys()];
      // A new id every time: what is stored under earlier ones is not used any more.
      const suffix = randomBytes(6).toString("hex");
      // Changes that its readers may have missed are not announced again.
      await this.#beginWorkspaces(new Map(begun.map((id) => [id, `${projectionId}.${suffix}`])), { forget: true });
      return begun;
    }
  }

  /** Returns why a reply means that this owner's part of the store is damaged. Throws errors that concern the store as a whole. */
  #problemWith({ owner, feedOf }: OwnedCall, reply: unknown): string | undefined {
    if (reply instanceof Error) {
      // Wrong types and invalid numbers were written by others. All other errors are not about one workspace.
      if (owner !== CENTRAL && /^(WRONGTYPE|ERR) /.test(reply.message)) return reply.message;
      throw reply;
    }
    if (reply === -1) return "the store holds another one, or has gone back in time";
    if (feedOf === undefined) return undefined;
    const head = Number(Array.isArray(reply) ? reply[0] : reply);
    const before = this.#headOf(owner, feedOf);
    this.#heads.set(owner, { projectionId: feedOf, head });
    return head <= before ? "the feed has gone back in time" : undefined;
  }

  #headOf(feed: string, projectionId: string): number {
    const known = this.#heads.get(feed);
    return known?.projectionId === projectionId ? known.head : 0;
  }

  /**
   * Adds workspaces that were created after the projection began. They are complete when the projection is, because each of their
   * records was written when it was created.
   */
  async #joinNew(projectionId: string, workspaceIds: readonly string[]): Promise<void> {
    const isKnown = (id: string) => belongsTo(projectionId, this.#idOf(id));
    if (workspaceIds.every(isKnown)) return;
    await this.#readIds();
    for (const id of workspaceIds) if (this.#ids.has(id) && !isKnown(id)) throw otherProjection(projectionId);
    const unknown = workspaceIds.filter((id) => !this.#ids.has(id));
    if (unknown.length === 0) return;
    const [central, complete] = await this.#client.hmget(this.#keys.mark(CENTRAL), "projectionId", "complete");
    if (central !== projectionId) throw otherProjection(projectionId);
    await this.#beginWorkspaces(new Map(unknown.map((id) => [id, projectionId])), {});
    if (complete === "1") await this.complete(projectionId, unknown);
  }

  /** `ids` maps each workspace to its new projection id. */
  async #beginWorkspaces(ids: ReadonlyMap<string, string>, options: BeginOptions): Promise<void> {
    if (ids.size === 0) return;
    // Registered first: if this process dies in between, the workspace's mark does not match, and it begins again.
    await this.#client.hset(this.#keys.knownWorkspaces(), Object.fromEntries(ids));
    const args = await this.#beginArgs(options);
    const begin = ([id, projectionId]: [string, string]) => ({
      script: BEGIN,
      keys: [this.#keys.mark(id), this.#keys.changes(id)],
      args: [projectionId, ...args],
    });
    await runScripts(this.#client, [...ids].map(begin));
    for (const [id, projectionId] of ids) this.#ids.set(id, projectionId);
  }

  async #beginArgs({ forget = false, usePrevious = false }: BeginOptions): Promise<(string | number)[]> {
    // The nodes of a cluster go back in time separately, and the heartbeat notices only one of them.
    const mayUsePrevious = usePrevious && !isCluster(this.#client);
    return [this.#changesMax, flag(forget), flag(mayUsePrevious), await this.#knownRunId()];
  }

  async #readIds(): Promise<void> {
    this.#ids = new Map(Object.entries(await this.#client.hgetall(this.#keys.knownWorkspaces())));
  }

  #idOf(workspaceId: string): string {
    return this.#ids.get(workspaceId) ?? "";
  }

  /** Writes records of one workspace. */
  #setRecords(version: number, writes: readonly RecordWrite[]): OwnedCall[] {
    const [first] = writes;
    if (first === undefined) return [];
    const owner = first.ref.workspaceId;
    // On a cluster the mark is in another slot, so only the checks before the writes and at the announcement apply.
    const mark = isCluster(this.#client) ? [] : [this.#keys.mark(owner)];
    const head = [this.#idOf(owner), version];
    const places = writes.map((write) => ({ write, json: jsonOf(write), ...this.#keys.record(write.ref) }));
    if (places[0]?.field !== undefined) {
      return places.map(({ key, field = "", json = "" }) => ({
        owner,
        script: SET_FIELD,
        keys: [key, this.#keys.overridesGone(key), ...mark],
        args: [...head, json, TOMBSTONE_KEPT_MS, field],
      }));
    }
    const args = places.flatMap(({ write, json }) => {
      const isForGood = json !== undefined || staysForGood(write);
      return [json ?? "", isForGood ? "" : TOMBSTONE_KEPT_MS];
    });
    if (isCluster(this.#client)) {
      return places.map(({ key }, i) => ({
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
        keys: [...places.map(({ key }) => key), ...mark],
        args: [...head, places.length, ...args],
      },
    ];
  }

  #announce(feed: string, projectionId: string, version: number, writes: readonly RecordWrite[]): OwnedCall[] {
    const calls: OwnedCall[] = [];
    for (let at = 0; at < writes.length; at += ENTRIES_PER_CALL) {
      const changes = writes.slice(at, at + ENTRIES_PER_CALL);
      const triples = changes.flatMap(({ ref }) => [ref.kind, ref.workspaceId, ref.id]);
      calls.push({
        owner: feed,
        feedOf: projectionId,
        script: ANNOUNCE,
        keys: [this.#keys.mark(feed), this.#keys.changes(feed)],
        args: [projectionId, this.#changesMax, version, ...triples],
      });
    }
    return calls;
  }

  #heartbeat(
    feed: string,
    projectionId: string,
    [asOfMs, lagging]: readonly [number, string],
    runId: string,
  ): OwnedCall {
    const keys = [this.#keys.mark(feed), this.#keys.changes(feed)];
    return {
      owner: feed,
      feedOf: projectionId,
      script: HEARTBEAT,
      keys,
      args: [projectionId, asOfMs, lagging, this.#headOf(feed, projectionId), runId],
    };
  }

  #complete(feed: string, projectionId: string, version: number): ScriptCall {
    return { script: COMPLETE, keys: [this.#keys.mark(feed)], args: [projectionId, version] };
  }

  /** As of the state that the relay last saw: of a server that restarted since, nothing is confirmed. */
  async #knownRunId(): Promise<string> {
    this.#runId ??= await readRunId(this.#client);
    return this.#runId;
  }
}

/** Groups adjacent writes of one workspace that are stored in the same way, in runs that fit into one call. */
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

/** Whether it is the id of the whole projection, or of one workspace in it that began again. */
const belongsTo = (projectionId: string, id: string): boolean =>
  id === projectionId || id.startsWith(`${projectionId}.`);

const otherProjection = (projectionId: string): ProjectionChanged =>
  new ProjectionChanged(`the store does not hold projection ${projectionId}`);

function refuseOther(projectionId: string, replies: readonly unknown[]): void {
  if (replies.includes(-1)) throw otherProjection(projectionId);
}
