import { createContext, useContext, useSyncExternalStore } from "react";

/** Whether the server answered the last call. */
export interface Connection {
  report(reached: boolean): void;
  /** When the first of the calls failed that have failed since; undefined while the server answers. */
  lostSinceMs(): number | undefined;
  subscribe(listener: () => void): () => void;
}

export function createConnection(nowMs: () => number): Connection {
  let lostSince: number | undefined;
  const listeners = new Set<() => void>();
  return {
    report(reached) {
      const before = lostSince;
      lostSince = reached ? undefined : (lostSince ?? nowMs());
      if (before !== lostSince) for (const listener of listeners) listener();
    },
    lostSinceMs: () => lostSince,
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

export const ConnectionContext = createContext<Connection>(createConnection(Date.now));

/** Returns since when the server has not answered; undefined while it does. */
export function useLostSince(): number | undefined {
  const connection = useContext(ConnectionContext);
  return useSyncExternalStore(connection.subscribe, connection.lostSinceMs);
}
