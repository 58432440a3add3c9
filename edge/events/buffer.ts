import type { LineSink, UsageEvent } from "./contract.ts";

/*
 * Collects events as lines of JSON, and sends them 200 ms after the first event or as soon as 500 events are waiting. One send is in flight
 * at a time, and unsent events wait for the next send. Sending an event twice is harmless, because it has an id. The number of waiting
 * events is bounded. At this bound, a new event is dropped, or an older event of a workspace with more waiting events; dropped events are
 * counted. Events over the store's quota are dropped and counted immediately, so that they do not delay events of other workspaces.
 *
 * Waiting events are stored as bytes, because hundreds of objects that survive a young garbage collection would cost a sidecar more than
 * serializing the events.
 */

const FLUSH_AFTER_MS = 200;
const SEND_AT = 500;
const WAITING_MAX = 10_000;
/** Size of a workspace's first batch buffer. It is small, because an api-server sends events of many workspaces. */
const FIRST_BATCH_BYTES = 4 * 1024;
/** Maximum bytes of a batch, which becomes one stream entry. Readers accept entries of up to 80 KiB. */
const BATCH_BYTES = 64 * 1024;
/** Maximum number of spare buffers. Under load, this many are in flight or being filled. */
const SPARES_MAX = 4;
/** Maximum UTF-8 bytes per UTF-16 code unit. */
const BYTES_PER_UNIT_MAX = 3;
const LINE_FEED = 0x0a;

export interface EventBatch {
  readonly workspaceId: string;
  /** Lines of events. Each ends with a line feed and contains no other. */
  readonly lines: Buffer;
  readonly count: number;
}

/** `refused`: the workspace's quota is exhausted. */
export type Sent = "stored" | "refused";

export interface BufferOptions {
  /** Rejects if it is unknown whether all events were stored. */
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
  /** The open batch of each workspace, to which new events are added. */
  #open = new Map<string, OpenBatch>();
  #full: OpenBatch[] = [];
  /** Buffers to reuse. Under load, buffers would otherwise be allocated and freed all the time. */
  readonly #spares: Buffer[] = [];
  #waiting = 0;
  /** Number of waiting batches by workspace. */
  readonly #waitingOf = new Map<string, number>();
  #dropped = 0;
  #timer: NodeJS.Timeout | undefined;
  #sending: Promise<void> | undefined;
  #isClosed = false;
  /** Whether the next event may trigger a send. False after a failure, so that an unreachable store is retried at intervals. */
  #mayHurry = true;

  constructor({ send, waitingMax = WAITING_MAX }: BufferOptions) {
    this.#send = send;
    this.#waitingMax = waitingMax;
  }

  add(event: UsageEvent): void {
    this.addLine(event.workspaceId, JSON.stringify(event));
  }

  addLine(workspaceId: string, line: string): void {
    if (this.#isClosed || (this.#waiting >= this.#waitingMax && !this.#admit(workspaceId))) {
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

  /** Makes one attempt to send all waiting events. Events of a failed send keep waiting. */
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

  /**
   * Makes room for an event of `workspaceId` by dropping the oldest batch of the workspace with the most waiting events. Drops nothing and
   * returns false if `workspaceId` already uses its equal share.
   */
  #admit(workspaceId: string): boolean {
    const workspaces = this.#waitingOf.size + (this.#waitingOf.has(workspaceId) ? 0 : 1);
    if ((this.#waitingOf.get(workspaceId) ?? 0) >= this.#waitingMax / workspaces) return false;
    const [most] = [...this.#waitingOf].reduce((a, b) => (b[1] > a[1] ? b : a));
    const at = this.#full.findIndex((batch) => batch.workspaceId === most);
    const dropped = at === -1 ? this.#open.get(most) : this.#full.splice(at, 1)[0];
    // All batches of the workspace are in flight, so none can be dropped.
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
        // The batch remains in the queue after a failed send. If the queue later exceeds its limit and drops it, `dropped` counts its
        // events.
        this.#full.push(batch);
        continue;
      }
      if (outcome?.value === "refused") this.#dropped += batch.count;
      this.#count(batch.workspaceId, -batch.count);
      if (batch.bytes.length === BATCH_BYTES && this.#spares.length < SPARES_MAX) this.#spares.push(batch.bytes);
    }
    this.#mayHurry = this.#full.length === 0;
    this.#sending = undefined;
    // Events that arrived during the send wait for the full delay again. Sending them immediately would turn a few large sends into many
    // small ones.
    if (this.#waiting > 0) this.#schedule();
  }
}

const toEventBatch = ({ workspaceId, bytes, length, count }: OpenBatch): EventBatch => ({
  workspaceId,
  lines: bytes.subarray(0, length),
  count,
});
