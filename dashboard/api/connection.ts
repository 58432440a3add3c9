import { createContext, useContext, useSyncExternalStore } from "react";

/** Tracks whether the server responded to the last call. */
export interface Connection {
  report(reached: boolean): void;
  /** Time of the first failed call since the last response; `undefined` while the server responds. */
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

/** Returns the time of the first failed call since the last response; `undefined` while the server responds. */
export function useLostSince(): number | undefined {
  const connection = useContext(ConnectionContext);
  return useSyncExternalStore(connection.subscribe, connection.lostSinceMs);
}
