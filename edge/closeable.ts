/** What holds connections or timers until it is closed. `close` resolves when they are gone. */
export interface Closeable {
  close(): Promise<void>;
}
