import type { ChangeListener, ReadBatch, RecordSource, RefusedKind } from "../../../edge/projection/contract.ts";
import type { RecordRef } from "../../../edge/records.ts";

/** A listener that records its calls in order as short texts. */
export class Recording implements ChangeListener {
  readonly told: string[] = [];

  onChange(ref: RecordRef): void {
    this.told.push(`${ref.kind} ${ref.workspaceId} ${ref.id}`);
  }

  onReset(reason: string): void {
    this.told.push(`reset: ${reason}`);
  }

  onHeartbeat(asOfMs: number, lagging: ReadonlyMap<string, number> = new Map()): void {
    const behind = [...lagging].map(([workspaceId, ms]) => ` ${workspaceId}=${ms}`);
    this.told.push(`heartbeat ${asOfMs}${behind.join("")}`);
  }

  onRefused(what: RefusedKind): void {
    this.told.push(`refused ${what}`);
  }

  resets(): string[] {
    return this.told.filter((text) => text.startsWith("reset"));
  }
}

/** A source that can delay its replies and counts its reads. */
export class GatedSource implements RecordSource {
  readonly #inner: RecordSource;
  #gate: Promise<void> = Promise.resolve();
  #heldFrom = 1;
  /** Refs of each read so far. */
  readonly refs: (readonly RecordRef[])[] = [];
  /** Number of reads answered by the inner source, including delayed ones. */
  responses = 0;
  isBroken = false;

  constructor(inner: RecordSource) {
    this.#inner = inner;
  }

  get reads(): number {
    return this.refs.length;
  }

  /** Delays replies from the read `from` on (default: the next) until the returned function is called; reads still run immediately. */
  hold(from = this.reads + 1): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    this.#heldFrom = from;
    return () => {
      this.#gate = Promise.resolve();
      resolve();
    };
  }

  async read(refs: readonly RecordRef[]): Promise<ReadBatch> {
    this.refs.push(refs);
    const gate = this.reads < this.#heldFrom ? undefined : this.#gate;
    const batch: ReadBatch = this.isBroken ? { usable: false, reason: "broken" } : await this.#inner.read(refs);
    this.responses += 1;
    await gate;
    return batch;
  }
}
