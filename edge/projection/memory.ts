import { randomUUID } from "node:crypto";
import { POSTGRES_ONLY_KINDS, type RecordRef } from "../records.ts";
import {
  type BeginOptions,
  type ChangeListener,
  type ChangeStream,
  type Following,
  jsonOf,
  ProjectionChanged,
  type ReadBatch,
  type ReadRecord,
  type RecordSource,
  type RecordWrite,
  type RecordWriter,
  type RestartedWorkspaces,
  type StoreState,
  type StreamId,
  staysForGood,
  TOMBSTONE_KEPT_MS,
} from "./contract.ts";

const NONE_ANEW: RestartedWorkspaces = { begun: [] };

interface Kept {
  readonly version: number;
  /** JSON of the record; `undefined` for a tombstone. It is stored as text, so that each reader gets its own objects, as with Redis. */
  readonly json: string | undefined;
  /** Time at which the tombstone was written; `undefined` if it never expires. */
  readonly unavailableAtMs: number | undefined;
}

interface Workspace {
  isComplete: boolean;
  readonly records: Map<string, Kept>;
}

/**
 * Writer, source and change stream in the memory of one process, for `postern dev`. Changes are delivered before `write` returns. All
 * listeners share one gapless stream; each gets only the entries of its workspace.
 */
export class MemoryProjectionStore implements RecordWriter, RecordSource, ChangeStream {
  readonly #nowMs: () => number;
  readonly #runId = randomUUID();
  readonly #listeners = new Map<ChangeListener, StreamId>();
  readonly #workspaces = new Map<string, Workspace>();
  #projectionId: string | undefined;
  #isGlobalComplete = false;
  #head = 0;
  #version = 0;
  #asOfMs: number | undefined;

  constructor(nowMs: () => number = Date.now) {
    this.#nowMs = nowMs;
  }

  async state(): Promise<StoreState> {
    return {
      projectionId: this.#projectionId,
      complete: this.#projectionId !== undefined && this.#isGlobalComplete,
      head: this.#head,
      version: this.#version,
      asOfMs: this.#asOfMs ?? 0,
      runId: this.#runId,
    };
  }

  async begin(
    projectionId: string,
    workspaceIds: readonly string[],
    { forget = false }: BeginOptions = {},
  ): Promise<void> {
    const isNew = projectionId !== this.#projectionId;
    if (isNew) {
      this.#workspaces.clear();
      this.#projectionId = projectionId;
      this.#isGlobalComplete = false;
      this.#head = 0;
      this.#version = 0;
      this.#asOfMs = undefined;
    }
    for (const id of workspaceIds) {
      if (!this.#workspaces.has(id)) this.#workspaces.set(id, { isComplete: false, records: new Map() });
    }
    if (isNew) for (const listener of this.#listeners.keys()) listener.onReset("another projection", { forget });
  }

  async write({
    projectionId,
    version,
    writes,
    announce = true,
  }: Parameters<RecordWriter["write"]>[0]): Promise<RestartedWorkspaces> {
    this.#check(projectionId);
    for (const write of writes) this.#set(version, write);
    if (!announce) return NONE_ANEW;
    this.#version = Math.max(this.#version, version);
    this.#head += writes.length;
    for (const { ref } of writes) {
      for (const [listener, stream] of this.#listeners) {
        if (stream === "central") listener.onChange(ref);
        else if (stream.workspaceId === ref.workspaceId && !POSTGRES_ONLY_KINDS.has(ref.kind)) listener.onChange(ref);
      }
    }
    return NONE_ANEW;
  }

  async complete(projectionId: string, workspaceIds: readonly string[], version = 0): Promise<void> {
    this.#check(projectionId);
    this.#version = Math.max(this.#version, version);
    for (const id of workspaceIds) this.#workspace(id).isComplete = true;
    this.#isGlobalComplete ||= [...this.#workspaces.values()].every((workspace) => workspace.isComplete);
  }

  /** In-memory data is never rolled back, so workspaces never need a restart. */
  async completeWorkspace(workspaceId: string): Promise<void> {
    this.#workspace(workspaceId).isComplete = true;
  }

  async nowMs(): Promise<number> {
    return this.#nowMs();
  }

  async heartbeat(
    projectionId: string,
    asOfMs: number,
    workspaceIds: readonly string[],
    lagging: ReadonlyMap<string, number> = new Map(),
  ): Promise<RestartedWorkspaces & { incomplete: string[] }> {
    this.#check(projectionId);
    const incomplete = workspaceIds.filter((id) => !this.#workspace(id).isComplete);
    this.#head += 1;
    this.#asOfMs = Math.max(asOfMs, this.#asOfMs ?? 0);
    for (const [listener, stream] of this.#listeners) {
      if (stream === "central") listener.onHeartbeat(asOfMs, lagging);
      else if (workspaceIds.includes(stream.workspaceId)) {
        listener.onHeartbeat(lagging.get(stream.workspaceId) ?? asOfMs);
      }
    }
    return { begun: [], incomplete };
  }

  async read(refs: readonly RecordRef[]): Promise<ReadBatch> {
    const [first] = refs;
    if (first === undefined) return { usable: true, records: [] };
    if (refs.some((ref) => POSTGRES_ONLY_KINDS.has(ref.kind))) {
      return { usable: false, reason: "records of this kind are not kept here" };
    }
    const workspace = this.#workspaces.get(first.workspaceId);
    if (this.#projectionId === undefined || workspace === undefined) {
      return { usable: false, reason: "nothing is projected" };
    }
    const records = refs.map((ref) => this.#get(workspace, ref));
    if (!workspace.isComplete && records.some((record) => record.state === "missing")) {
      return { usable: false, reason: "the projection is not complete yet", partial: records };
    }
    return { usable: true, records };
  }

  async follow(stream: StreamId, listener: ChangeListener): Promise<Following> {
    this.#listeners.set(listener, stream);
    if (this.#asOfMs !== undefined) listener.onHeartbeat(this.#asOfMs);
    return {
      // In-memory data is lost when the process ends, so no other process could continue from a position.
      position: () => undefined,
      close: async () => {
        this.#listeners.delete(listener);
      },
    };
  }

  storeNowMs(): number {
    return this.#nowMs();
  }

  #check(projectionId: string): void {
    if (projectionId === this.#projectionId) return;
    throw new ProjectionChanged(`the store does not hold projection ${projectionId}`);
  }

  /** A workspace that was created after the projection began is complete when the projection is. */
  #workspace(id: string): Workspace {
    const known = this.#workspaces.get(id);
    if (known !== undefined) return known;
    const workspace = { isComplete: this.#isGlobalComplete, records: new Map<string, Kept>() };
    this.#workspaces.set(id, workspace);
    return workspace;
  }

  #set(version: number, write: RecordWrite): void {
    const { ref } = write;
    if (POSTGRES_ONLY_KINDS.has(ref.kind)) return;
    const { records } = this.#workspace(ref.workspaceId);
    const name = recordName(ref);
    const known = records.get(name);
    if (known !== undefined && known.version > version) return;
    records.set(name, {
      version,
      json: jsonOf(write),
      unavailableAtMs: staysForGood(write) ? undefined : this.#nowMs(),
    });
  }

  #get({ records }: Workspace, ref: RecordRef): ReadRecord {
    const name = recordName(ref);
    const kept = records.get(name);
    if (kept === undefined) return { state: "missing" };
    const { version, json } = kept;
    if (json !== undefined) return { state: "found", version, data: JSON.parse(json), length: json.length };
    const { unavailableAtMs } = kept;
    if (unavailableAtMs === undefined || this.#nowMs() - unavailableAtMs < TOMBSTONE_KEPT_MS) return { state: "gone" };
    records.delete(name);
    return { state: "missing" };
  }
}

const recordName = (ref: RecordRef): string => `${ref.kind}:${ref.id}`;
