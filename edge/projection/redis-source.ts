import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { POSTGRES_ONLY_KINDS, type RecordRef } from "../records.ts";
import { isCluster, type RedisClient, readRunId } from "../redis/connect.ts";
import type { RecordSlot, RedisKeys } from "../redis/keys.ts";
import { within } from "../redis/script.ts";
import type { ReadBatch, ReadRecord, RecordSource } from "./contract.ts";
import type { RollbackDetector } from "./rollback-detector.ts";
import { isProjectionId, readInteger } from "./stream-entry.ts";

const READ_TIMEOUT_MS = 1_000;
/**
 * Maximum size of a record, far above the size of the largest genuine record. Longer values are not fetched, because others can write to
 * the store.
 */
export const RECORD_BYTES_MAX = 8 * 1024 * 1024;

const STATE_FIELDS = ["projectionId", "complete", "previousId", "head", "runId"] as const;

/**
 * Reads records together with the projection state of their workspace, before and after: a record certainly does not exist only if the
 * projection was complete during the whole read. A record of this projection is always correct. While this projection is incomplete, a
 * record of the previous projection that the state names is correct too. A record of any other projection counts as missing.
 *
 * A restarted server may have rolled back to a state that this process has never read, or read long ago. So after each new connection, no
 * data is usable until the projection state names the current server run, which proves that the relay has checked the store's data.
 *
 * A projection state that is behind this process's last known state of the stream shows a rollback, so that no data is usable. (On a
 * cluster this covers only the node of the projection state. The relay detects within a second that another node was restored, and begins a
 * new projection.) Each record is evaluated separately, so that an invalid record does not affect the others.
 */
export class RedisRecordSource implements RecordSource {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #rollbacks: RollbackDetector;
  /** Workspaces confirmed since the connection was last lost: their projection state has named the server's current run id. */
  readonly #confirmed = new Set<string>();
  /** Number of times the connection was lost. */
  #losses = 0;

  /** The caller owns `client` and closes it. `rollbacks` is shared with the change stream of the same store. */
  constructor(client: RedisClient, keys: RedisKeys, rollbacks: RollbackDetector) {
    this.#client = client;
    this.#keys = keys;
    this.#rollbacks = rollbacks;
    const onLost = (): void => {
      this.#losses += 1;
      this.#confirmed.clear();
    };
    if (!isCluster(client)) client.on("close", onLost);
    else {
      const watch = (node: Redis): unknown => node.on("close", onLost);
      client.nodes("all").forEach(watch);
      client.on("+node", watch);
    }
  }

  async read(refs: readonly RecordRef[]): Promise<ReadBatch> {
    const [first] = refs;
    if (first === undefined) return { usable: true, records: [] };
    if (refs.some((ref) => POSTGRES_ONLY_KINDS.has(ref.kind))) {
      return { usable: false, reason: "records of this kind are not kept in Redis" };
    }
    const { workspaceId } = first;
    const losses = this.#losses;
    const isConfirmed = this.#confirmed.has(workspaceId);
    const known = this.#rollbacks.known(workspaceId);
    let replies: Reply[];
    let runId = "";
    try {
      replies = await within(READ_TIMEOUT_MS, this.#ask(workspaceId, refs));
      // Reads the run id after the records. If Redis restarted in between, the projection state still names the previous run, which shows
      // the restart.
      if (!isConfirmed) runId = await within(READ_TIMEOUT_MS, readRunId(this.#client));
    } catch (error) {
      return { usable: false, reason: `Redis: ${describe(error)}` };
    }
    const [before, after] = [readProjectionState(replies[0]), readProjectionState(replies.at(-1))];
    if (before === undefined || after === undefined) return { usable: false, reason: "nothing is projected" };
    if ("problem" in before) return unreadableState(before.problem);
    if ("problem" in after) return unreadableState(after.problem);
    // Checks whether each state could have followed the one before it. If not, the store was rolled back, for example by a restart.
    const isTrusted =
      this.#rollbacks.evaluate(workspaceId, before, known) && this.#rollbacks.evaluate(workspaceId, after, before);
    if (!isTrusted) return { usable: false, reason: "the store has gone back in time" };
    if (after.projectionId !== before.projectionId) {
      return { usable: false, reason: "the projection is being made anew" };
    }
    if (!isConfirmed) {
      if (runId === "" || before.runId !== runId || after.runId !== runId) return UNCONFIRMED;
      if (losses === this.#losses) this.#confirmed.add(workspaceId);
    }
    const records = replies.slice(1, -1).map((reply) => readRecord(reply, before));
    if (!(before.isComplete && after.isComplete) && records.some((record) => record.state === "missing")) {
      return { usable: false, reason: "the projection is not complete yet", partial: records };
    }
    return { usable: true, records };
  }

  /** Reads the projection state, each record, and the projection state again. */
  async #ask(workspaceId: string, refs: readonly RecordRef[]): Promise<Reply[]> {
    const readState: Command = ["hmget", this.#keys.projectionState(workspaceId), ...STATE_FIELDS];
    const locations = refs.map((ref) => this.#keys.record(ref));
    const tooLong = await this.#findTooLong(locations);
    const fetches = locations.filter((place) => !tooLong.has(place)).map(fetch);
    const replies = await this.#send([readState], fetches, [readState]);
    const texts = replies.slice(1, -1).values();
    const records = locations.map((place) => (tooLong.has(place) ? TOO_LONG : texts.next().value));
    return [replies[0], ...records, replies.at(-1)].map((reply) => reply ?? { problem: "no reply" });
  }

  /**
   * Reads the lengths of hash fields first, because Redis has no command that returns part of a hash field, as GETRANGE does for a string.
   */
  async #findTooLong(locations: readonly RecordSlot[]): Promise<ReadonlySet<RecordSlot>> {
    const fields = locations.filter(({ field }) => field !== undefined);
    if (fields.length === 0) return new Set();
    const lengths = await this.#send(fields.map(({ key, field = "" }): Command => ["hstrlen", key, field]));
    return new Set(fields.filter((_, i) => Number(lengths[i]?.value ?? 0) > RECORD_BYTES_MAX));
  }

  /** Runs the groups in order. Throws if the connection fails, but not if the store rejects a command. */
  async #send(...groups: (readonly Command[])[]): Promise<Reply[]> {
    const client = this.#client;
    if (!isCluster(client)) {
      // A record does not contain its own name, so replies could belong to another read. The text that is echoed after the records rules
      // this out.
      const text = randomUUID();
      const commands = [...groups.flat(), ["ping", text]].map((command) => [...command]);
      const replies = (await client.pipeline(commands).exec()) ?? [];
      const [error, repeated] = replies.pop() ?? [];
      if (error === null && String(repeated) !== text) throw new Error("replies do not belong to what was asked");
      return replies.map(([error, value]) => (error === null ? { value } : refused(error)));
    }
    const replies: Reply[] = [];
    for (const group of groups) {
      const sent = group.map(([name, ...args]) => client.call(name, ...args));
      replies.push(...(await Promise.all(sent.map((each) => each.then((value) => ({ value }), refused)))));
    }
    return replies;
  }
}

type Command = readonly [name: string, ...args: string[]];

type Reply =
  | { readonly value: unknown; readonly problem?: never }
  | { readonly value?: never; readonly problem: string };

const TOO_LONG: Reply = { problem: `longer than ${RECORD_BYTES_MAX} bytes` };

/** Reads one byte more than the limit, to recognize longer records. The range of a missing string is empty. */
const fetch = ({ key, field }: RecordSlot): Command =>
  field === undefined ? ["getrange", key, "0", String(RECORD_BYTES_MAX)] : ["hget", key, field];

/** An error reply concerns one command, but a lost connection concerns all of them. */
function refused(error: unknown): Reply {
  if (error instanceof Error && error.name === "ReplyError") return { problem: error.message };
  throw error;
}

/**
 * ioredis reports a missing connection with an error that names one of its options. The error is replaced, because operators see it in a
 * gate's `/readyz`.
 */
function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.includes("enableOfflineQueue") ? "there is no connection" : message;
}

const unreadableState = (problem: string): ReadBatch => ({
  usable: false,
  reason: `the projection state cannot be read: ${problem}`,
  refused: "state",
});

const UNCONFIRMED: ReadBatch = {
  usable: false,
  reason: "Redis was restarted, or replaced, and no api-server has checked since what it holds",
};

interface ProjectionState {
  readonly projectionId: string;
  readonly runId: string | undefined;
  readonly isComplete: boolean;
  readonly previousId: string | undefined;
  readonly head: number;
}

/** Parses the projection state; returns `undefined` if it does not exist. */
function readProjectionState(reply: Reply | undefined): ProjectionState | undefined | { readonly problem: string } {
  const values = reply?.value;
  if (!Array.isArray(values)) return { problem: reply?.problem ?? "no reply" };
  const [projectionId, complete, previousId, head, runId] = values as (string | null)[];
  if (projectionId === null) return undefined;
  const known = readInteger(head);
  if (projectionId === undefined || !isProjectionId(projectionId)) return { problem: "no projection id" };
  if (known === undefined) return { problem: "its head is no number" };
  return {
    projectionId,
    isComplete: complete === "1",
    previousId: previousId ?? undefined,
    head: known,
    runId: runId ?? undefined,
  };
}

/** Parses `<projection id> <version> <JSON>`. Without JSON the text is a tombstone. */
function readRecord({ value, problem }: Reply, state: ProjectionState): ReadRecord {
  if (problem !== undefined) return { state: "unreadable", problem };
  if (value === null || value === "") return { state: "missing" };
  if (typeof value !== "string") return { state: "unreadable", problem: "no text" };
  if (value.length * 3 > RECORD_BYTES_MAX && Buffer.byteLength(value) > RECORD_BYTES_MAX) {
    return { state: "unreadable", problem: TOO_LONG.problem ?? "" };
  }
  // A text in any other form does not come from the relay, and must not be treated as a missing record.
  const [head = "", projectionId = "", digits] = /^(\S{1,64}) (\d+) /.exec(value) ?? [];
  const version = readInteger(digits);
  if (version === undefined) return { state: "unreadable", problem: "it does not begin like a record" };
  const isPrevious = !state.isComplete && projectionId === state.previousId;
  if (projectionId !== state.projectionId && !isPrevious) return { state: "missing" };
  if (value.length === head.length) return { state: "gone" };
  try {
    const text = value.slice(head.length);
    return { state: "found", version, data: JSON.parse(text), length: text.length };
  } catch {
    return { state: "unreadable", problem: "no JSON" };
  }
}
