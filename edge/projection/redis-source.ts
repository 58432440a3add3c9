import { randomUUID } from "node:crypto";
import type { Redis } from "ioredis";
import { CENTRAL_ONLY_KINDS, type RecordRef } from "../records.ts";
import { isCluster, type RedisClient, readRunId } from "../redis/connect.ts";
import type { RecordPlace, RedisKeys } from "../redis/keys.ts";
import { within } from "../redis/script.ts";
import type { ReadBatch, ReadRecord, RecordSource } from "./contract.ts";
import { isProjectionId, readWhole } from "./feed-entry.ts";
import type { KnownHeads } from "./known-heads.ts";

const READ_TIMEOUT_MS = 1_000;
/** Far larger than the largest record. Longer values are not fetched, because others can write to the store. */
export const RECORD_BYTES_MAX = 8 * 1024 * 1024;

const MARK_FIELDS = ["projectionId", "complete", "previousId", "head", "runId"] as const;

/**
 * Reads records together with the mark of their workspace, before and after: a missing record is known to be missing only if the
 * projection was complete during the whole read. A record under the mark's projection is correct in any case, and so is
 * one of the projection that the mark names as the previous one, as long as this one is incomplete. A record of any other
 * projection was not written in this one, so it counts as missing.
 *
 * A server that restarted may have gone back to a state that this process has seen nothing of, or was past long ago. So on each new
 * connection nothing is usable until the mark names the run of the server: by then the relay has checked what the store holds.
 *
 * A mark that is behind what this process has seen of its feed belongs to a store that has gone back in time: then nothing
 * is usable. (On a cluster this covers only the mark's node. The relay notices within a second that another node was restored, and
 * begins a new projection.) Each record is judged separately: one of a wrong type, or an invalid one, does not affect the others.
 */
export class RedisRecordSource implements RecordSource {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;
  readonly #heads: KnownHeads;
  /** Workspaces whose marks named the run of the server, since a connection was last lost. */
  readonly #confirmed = new Set<string>();
  /** How many connections were lost. */
  #losses = 0;

  /** The connection belongs to the caller, who also closes it. `heads` is shared with what follows the same store. */
  constructor(client: RedisClient, keys: RedisKeys, heads: KnownHeads) {
    this.#client = client;
    this.#keys = keys;
    this.#heads = heads;
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
    if (refs.some((ref) => CENTRAL_ONLY_KINDS.has(ref.kind))) {
      return { usable: false, reason: "records of this kind are not kept in Redis" };
    }
    const { workspaceId } = first;
    const losses = this.#losses;
    const isConfirmed = this.#confirmed.has(workspaceId);
    const known = this.#heads.known(workspaceId);
    let replies: Reply[];
    let runId = "";
    try {
      replies = await within(READ_TIMEOUT_MS, this.#ask(workspaceId, refs));
      // Later than the records: they are from this run, or from the one before, which the mark then names.
      if (!isConfirmed) runId = await within(READ_TIMEOUT_MS, readRunId(this.#client));
    } catch (error) {
      return { usable: false, reason: `Redis: ${describe(error)}` };
    }
    const [before, after] = [readMark(replies[0]), readMark(replies.at(-1))];
    if (before === undefined || after === undefined) return { usable: false, reason: "nothing is projected" };
    if ("problem" in before) return unreadableMark(before.problem);
    if ("problem" in after) return unreadableMark(after.problem);
    // Compared in both directions: the store may have been restarted in between.
    const isTrusted = this.#heads.judge(workspaceId, before, known) && this.#heads.judge(workspaceId, after, before);
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

  /** The mark, each record, and the mark again. */
  async #ask(workspaceId: string, refs: readonly RecordRef[]): Promise<Reply[]> {
    const mark: Command = ["hmget", this.#keys.mark(workspaceId), ...MARK_FIELDS];
    const places = refs.map((ref) => this.#keys.record(ref));
    const tooLong = await this.#findTooLong(places);
    const fetches = places.filter((place) => !tooLong.has(place)).map(fetch);
    const replies = await this.#send([mark], fetches, [mark]);
    const texts = replies.slice(1, -1).values();
    const records = places.map((place) => (tooLong.has(place) ? TOO_LONG : texts.next().value));
    return [replies[0], ...records, replies.at(-1)].map((reply) => reply ?? { problem: "no reply" });
  }

  /** No command fetches a part of a field, as GETRANGE does for a string. */
  async #findTooLong(places: readonly RecordPlace[]): Promise<ReadonlySet<RecordPlace>> {
    const fields = places.filter(({ field }) => field !== undefined);
    if (fields.length === 0) return new Set();
    const lengths = await this.#send(fields.map(({ key, field = "" }): Command => ["hstrlen", key, field]));
    return new Set(fields.filter((_, i) => Number(lengths[i]?.value ?? 0) > RECORD_BYTES_MAX));
  }

  /** Runs each group after the one before it. Throws when the connection fails, not when the store refuses a command. */
  async #send(...groups: (readonly Command[])[]): Promise<Reply[]> {
    const client = this.#client;
    if (!isCluster(client)) {
      // A record says not whose it is. A text that comes back behind it shows that these are not the replies of another read.
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

/** One byte more than a record may have shows that it is too long. The range of a missing string is empty. */
const fetch = ({ key, field }: RecordPlace): Command =>
  field === undefined ? ["getrange", key, "0", String(RECORD_BYTES_MAX)] : ["hget", key, field];

/** An error reply concerns one command; a lost connection concerns all. */
function refused(error: unknown): Reply {
  if (error instanceof Error && error.name === "ReplyError") return { problem: error.message };
  throw error;
}

/** ioredis says of a missing connection which of its options is set; people read this in `/readyz` of a gate. */
function describe(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return message.includes("enableOfflineQueue") ? "there is no connection" : message;
}

const unreadableMark = (problem: string): ReadBatch => ({
  usable: false,
  reason: `the mark cannot be read: ${problem}`,
  refused: "mark",
});

const UNCONFIRMED: ReadBatch = {
  usable: false,
  reason: "Redis was restarted, or replaced, and no api-server has checked since what it holds",
};

interface Mark {
  readonly projectionId: string;
  readonly runId: string | undefined;
  readonly isComplete: boolean;
  readonly previousId: string | undefined;
  readonly head: number;
}

/** Returns undefined when there is none. */
function readMark(reply: Reply | undefined): Mark | undefined | { readonly problem: string } {
  const values = reply?.value;
  if (!Array.isArray(values)) return { problem: reply?.problem ?? "no reply" };
  const [projectionId, complete, previousId, head, runId] = values as (string | null)[];
  if (projectionId === null) return undefined;
  const known = readWhole(head);
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

/** `<projection id> <version> <JSON>`; no JSON is a tombstone. */
function readRecord({ value, problem }: Reply, mark: Mark): ReadRecord {
  if (problem !== undefined) return { state: "unreadable", problem };
  if (value === null || value === "") return { state: "missing" };
  if (typeof value !== "string") return { state: "unreadable", problem: "no text" };
  if (value.length * 3 > RECORD_BYTES_MAX && Buffer.byteLength(value) > RECORD_BYTES_MAX) {
    return { state: "unreadable", problem: TOO_LONG.problem ?? "" };
  }
  // Anything else was not written by us, and must not be treated as absence.
  const [head = "", projectionId = "", digits] = /^(\S{1,64}) (\d+) /.exec(value) ?? [];
  const version = readWhole(digits);
  if (version === undefined) return { state: "unreadable", problem: "it does not begin like a record" };
  const isPrevious = !mark.isComplete && projectionId === mark.previousId;
  if (projectionId !== mark.projectionId && !isPrevious) return { state: "missing" };
  if (value.length === head.length) return { state: "gone" };
  try {
    const text = value.slice(head.length);
    return { state: "found", version, data: JSON.parse(text), length: text.length };
  } catch {
    return { state: "unreadable", problem: "no JSON" };
  }
}
