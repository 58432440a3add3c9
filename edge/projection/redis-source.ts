import { isCluster, type RedisClient } from "../redis/connect.ts";
import type { RedisKeys } from "../redis/keys.ts";
import { within } from "../redis/script.ts";
import { CENTRAL_ONLY_KINDS, type ReadBatch, type ReadRecord, type RecordRef, type RecordSource } from "./contract.ts";

const READ_TIMEOUT_MS = 1_000;

/**
 * Reads records together with the mark of their workspace, before and after: what is missing is missing only if the
 * projection was complete all the while. A record that is there under the mark's projection is right in any case. One of
 * another projection was not written in this one, so it counts as missing.
 */
export class RedisRecordSource implements RecordSource {
  readonly #client: RedisClient;
  readonly #keys: RedisKeys;

  /** The connection belongs to the caller, who also closes it. */
  constructor(client: RedisClient, keys: RedisKeys) {
    this.#client = client;
    this.#keys = keys;
  }

  async read(refs: readonly RecordRef[]): Promise<ReadBatch> {
    const [first] = refs;
    if (first === undefined) return { usable: true, records: [] };
    if (refs.some((ref) => CENTRAL_ONLY_KINDS.has(ref.kind))) {
      return { usable: false, reason: "records of this kind are not kept in Redis" };
    }
    let replies: { before: Mark; texts: (string | null)[]; after: Mark };
    try {
      replies = await within(READ_TIMEOUT_MS, this.#readRaw(first.workspaceId, refs));
    } catch (error) {
      return { usable: false, reason: `Redis: ${error instanceof Error ? error.message : String(error)}` };
    }
    const { before, texts, after } = replies;
    const [projectionId] = before;
    if (projectionId == null) return { usable: false, reason: "nothing is projected" };
    if (after[0] !== projectionId) return { usable: false, reason: "the projection is being made anew" };
    const records = texts.map((text) => parseRecord(text, projectionId));
    const isComplete = before[1] === "1" && after[1] === "1";
    if (!isComplete && records.some((record) => record.state === "missing")) {
      return { usable: false, reason: "the projection is not complete yet", partial: { records, projectionId } };
    }
    return { usable: true, records, projectionId };
  }

  async #readRaw(workspaceId: string, refs: readonly RecordRef[]) {
    const mark = this.#keys.mark(workspaceId);
    const places = refs.map((ref) => this.#keys.record(ref));
    if (isCluster(this.#client)) {
      const cluster = this.#client;
      const before = await cluster.hmget(mark, "projectionId", "complete");
      const texts = await Promise.all(
        places.map(({ key, field }) => (field === undefined ? cluster.get(key) : cluster.hget(key, field))),
      );
      return { before, texts, after: await cluster.hmget(mark, "projectionId", "complete") };
    }
    const pipeline = this.#client.pipeline().hmget(mark, "projectionId", "complete");
    for (const { key, field } of places) {
      if (field === undefined) pipeline.get(key);
      else pipeline.hget(key, field);
    }
    const replies = (await pipeline.hmget(mark, "projectionId", "complete").exec()) ?? [];
    const values = replies.map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    });
    return {
      before: values[0] as Mark,
      texts: values.slice(1, -1) as (string | null)[],
      after: values[values.length - 1] as Mark,
    };
  }
}

type Mark = (string | null)[];

/** `<projection id> <version> <json>`; no JSON is a tombstone. */
function parseRecord(text: string | null, projectionId: string): ReadRecord {
  if (text === null || !text.startsWith(`${projectionId} `)) return { state: "missing" };
  const space = text.indexOf(" ", projectionId.length + 1);
  const json = text.slice(space + 1);
  if (json === "") return { state: "gone" };
  const version = Number(text.slice(projectionId.length + 1, space));
  try {
    return { state: "found", version, data: JSON.parse(json) };
  } catch {
    // Found, and not to be understood: the schema of its kind will refuse it, which must not read as 'there is none'.
    return { state: "found", version, data: undefined };
  }
}
