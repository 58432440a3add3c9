/** An owner of connections or timers. `close` resolves once they are released. */
export interface Closeable {
  close(): Promise<void>;
}
