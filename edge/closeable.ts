/** An owner of connections or timers. `close` resolves when they have been released. */
export interface Closeable {
  close(): Promise<void>;
}
