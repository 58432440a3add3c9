import type { RecordSource, RecordWriter } from "../../edge/projection/contract.ts";
import type { System } from "./system.ts";

/* Components that can be paused at a chosen point, so that a race has a defined order. */

/** A call that is paused after its work and before it returns. */
export interface Held {
  /** Resolves when the call has reached that point. */
  readonly reached: Promise<void>;
  release(): void;
}

class Hold implements Held {
  readonly #reached = Promise.withResolvers<void>();
  readonly #released = Promise.withResolvers<void>();
  readonly reached = this.#reached.promise;

  release(): void {
    this.#released.resolve();
  }

  async pass(): Promise<void> {
    this.#reached.resolve();
    await this.#released.promise;
  }
}

/** Returns a source whose `which`-th next read (0: the first) pauses after reading. */
export function slowSource(source: RecordSource): RecordSource & { holdRead(which: number): Held } {
  let held: { hold: Hold; after: number } | undefined;
  return {
    holdRead(which) {
      held = { hold: new Hold(), after: which };
      return held.hold;
    },
    async read(refs) {
      const holds = held?.after === 0 ? held.hold : undefined;
      if (held !== undefined) held.after -= 1;
      const batch = await source.read(refs);
      await holds?.pass();
      return batch;
    },
  };
}

export interface SlowWriter {
  readonly writer: RecordWriter;
  /** Pauses the next write before it is sent; its content has been read before. */
  holdWrite(): Held & { readonly ended: Promise<unknown> };
}

/** Returns a relay writer whose writes can be paused. */
export function slowWriter(writer: RecordWriter): SlowWriter {
  let held: { hold: Hold; ended: PromiseWithResolvers<unknown> } | undefined;
  return {
    holdWrite() {
      const [hold, ended] = [new Hold(), Promise.withResolvers<unknown>()];
      held = { hold, ended };
      return { reached: hold.reached, release: () => hold.release(), ended: ended.promise };
    },
    writer: {
      state: () => writer.state(),
      begin: (...args) => writer.begin(...args),
      complete: (...args) => writer.complete(...args),
      completeWorkspace: (id) => writer.completeWorkspace(id),
      nowMs: () => writer.nowMs(),
      heartbeat: (...args) => writer.heartbeat(...args),
      async write(batch) {
        const holding = held;
        held = undefined;
        await holding?.hold.pass();
        const written = writer.write(batch);
        holding?.ended.resolve(written.catch((error: unknown) => error));
        return await written;
      },
    },
  };
}

/** Runs `work` while every new projection is slow, as with a million keys. Changes are still projected. */
export async function whileRebuildsWait(system: System, work: () => Promise<void>): Promise<void> {
  const holder = await system.db.connect();
  try {
    await holder.query("begin; lock table roles in access exclusive mode");
    await work();
  } finally {
    await holder.query("rollback");
    holder.release();
  }
}
