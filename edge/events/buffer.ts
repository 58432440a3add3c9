import type { LineSink, UsageEvent } from "./contract.ts";

/*
 * Collects events as lines of JSON and sends them 200 ms after the first or when there are 500. One round of sending is
 * under way at a time; what cannot be sent waits for the next (an event has an id, so that sending it twice is harmless).
 * Only so many wait: beyond that new ones are dropped and counted, or older ones of a workspace that has more of them
 * waiting. What the store has no room for is dropped and counted at once: it would only keep others' from waiting.
 *
 * They wait as bytes, not as objects: hundreds of objects that outlive a collection of young garbage, again and again, cost
 * a sidecar more than writing them down does.
 */

const FLUSH_AFTER_MS = 200;
const SEND_AT = 500;
const WAITING_MAX = 10_000;
/** The first batch of a workspace in a round is small, because in the centre there are many workspaces. */
const FIRST_BATCH_BYTES = 4 * 1024;
/** A batch is an entry of the stream; the reader takes entries of up to 80 KiB. */
const BATCH_BYTES = 64 * 1024;
/** As many as are on their way or being filled under load. */
const SPARES_MAX = 4;
/** UTF-16 to UTF-8. */
const BYTES_PER_UNIT_MAX = 3;
const LINE_FEED = 0x0a;

export interface EventBatch {
  readonly workspaceId: string;
  /** Each event ends with a line feed; inside of it there is none. */
  readonly lines: Buffer;
  readonly count: number;
}

/** Refused: there is no room for the workspace's events. */
export type Sent = "stored" | "refused";

export interface BufferOptions {
  /** Rejects when it is not known that all were stored. */
  readonly send: (batch: EventBatch) => Promise<Sent>;
  readonly waitingMax?: number;
}

interface OpenBatch {
  readonly workspaceId: string;
  readonly bytes: Buffer;
  length: number;
  count: number;
}

export class BufferedSink implements LineSink {
  readonly #send: (batch: EventBatch) => Promise<Sent>;
  readonly #waitingMax: number;
  /** By workspace: what is still added to. */
  #open = new Map<string, OpenBatch>();
  #full: OpenBatch[] = [];
  /** Buffers that have been sent, for the next batches: under load they would else be made and thrown away all the time. */
  readonly #spares: Buffer[] = [];
  #waiting = 0;
  /** By workspace: how many of them. */
  readonly #waitingOf = new Map<string, number>();
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #isClosed = false;
  /** Off after a failure, so that a store that is away is tried at intervals and not with each event. */
  #mayHurry = true;

  constructor({ send, waitingMax = WAITING_MAX }: BufferOptions) {
    this.#send = send;
    this.#waitingMax = waitingMax;
  }

  add(event: UsageEvent): void {
    this.addLine(event.workspaceId, JSON.stringify(event));
  }

  addLine(workspaceId: string, line: string): void {
    if (this.#isClosed || (this.#waiting >= this.#waitingMax && !this.#makeRoomFor(workspaceId))) {
      this.#dropped += 1;
      return;
    }
    const batch = this.#batchFor(workspaceId, line.length * BYTES_PER_UNIT_MAX + 1);
    batch.length += batch.bytes.write(line, batch.length);
    batch.bytes[batch.length++] = LINE_FEED;
    batch.count += 1;
    this.#count(workspaceId, 1);
    if (this.#waiting >= SEND_AT && this.#mayHurry && this.#sending === undefined) void this.flush();
    else this.#schedule();
  }

  /** Tries each event that is waiting now once; what fails goes on waiting. */
  async flush(): Promise<void> {
    while (this.#sending !== undefined) await this.#sending;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#waiting === 0) return;
    this.#sending = this.#sendAll();
    await this.#sending;
  }

  dropped(): number {
    return this.#dropped;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
    clearTimeout(this.#timer);
    this.#dropped += this.#waiting;
    this.#waiting = 0;
    this.#waitingOf.clear();
    this.#open.clear();
    this.#full = [];
  }

  #count(workspaceId: string, events: number): void {
    this.#waiting += events;
    const waiting = (this.#waitingOf.get(workspaceId) ?? 0) + events;
    if (waiting > 0) this.#waitingOf.set(workspaceId, waiting);
    else this.#waitingOf.delete(workspaceId);
  }

  /** Drops the oldest batch of the workspace that has most waiting, unless this one has its equal part of them already. */
  #makeRoomFor(workspaceId: string): boolean {
    const workspaces = this.#waitingOf.size + (this.#waitingOf.has(workspaceId) ? 0 : 1);
    if ((this.#waitingOf.get(workspaceId) ?? 0) >= this.#waitingMax / workspaces) return false;
    const [most] = [...this.#waitingOf].reduce((a, b) => (b[1] > a[1] ? b : a));
    const at = this.#full.findIndex((batch) => batch.workspaceId === most);
    const dropped = at === -1 ? this.#open.get(most) : this.#full.splice(at, 1)[0];
    // All of them are being sent.
    if (dropped === undefined || most === workspaceId) return false;
    if (at === -1) this.#open.delete(most);
    this.#count(most, -dropped.count);
    this.#dropped += dropped.count;
    return true;
  }

  #batchFor(workspaceId: string, bytes: number): OpenBatch {
    const open = this.#open.get(workspaceId);
    if (open !== undefined && open.bytes.length - open.length >= bytes) return open;
    if (open !== undefined) this.#full.push(open);
    const batch = { workspaceId, bytes: this.#makeBuffer(bytes, open === undefined), length: 0, count: 0 };
    this.#open.set(workspaceId, batch);
    return batch;
  }

  #makeBuffer(bytesMin: number, isFirst: boolean): Buffer {
    const spare = bytesMin <= BATCH_BYTES ? this.#spares.pop() : undefined;
    return spare ?? Buffer.allocUnsafeSlow(Math.max(bytesMin, isFirst ? FIRST_BATCH_BYTES : BATCH_BYTES));
  }

  #schedule(): void {
    if (this.#timer !== undefined || this.#sending !== undefined || this.#isClosed) return;
    this.#timer = setTimeout(() => void this.flush(), FLUSH_AFTER_MS);
    this.#timer.unref();
  }

  async #sendAll(): Promise<void> {
    const round = [...this.#full, ...this.#open.values()];
    this.#full = [];
    this.#open.clear();
    const outcomes = await Promise.allSettled(round.map(async (batch) => this.#send(toEventBatch(batch))));
    for (const [at, batch] of round.entries()) {
      const outcome = outcomes[at];
      if (outcome?.status === "rejected") {
        // They go on waiting; `dropped` counts those for which there is no room in the end.
        this.#full.push(batch);
        continue;
      }
      if (outcome?.value === "refused") this.#dropped += batch.count;
      this.#count(batch.workspaceId, -batch.count);
      if (batch.bytes.length === BATCH_BYTES && this.#spares.length < SPARES_MAX) this.#spares.push(batch.bytes);
    }
    this.#mayHurry = this.#full.length === 0;
    this.#sending = undefined;
    // What came meanwhile waits its time too: sending it at once would make many small rounds out of few large ones.
    if (this.#waiting > 0) this.#schedule();
  }
}

const toEventBatch = ({ workspaceId, bytes, length, count }: OpenBatch): EventBatch => ({
  workspaceId,
  lines: bytes.subarray(0, length),
  count,
});
