/*
 * Limits the connections of a server. Below the limit, the limiter only counts connections. At the limit, a new connection replaces the one
 * that has been idle for the longest time, so that idle connections lock out no client. If no connection is idle, the new one is rejected.
 *
 * An address that exceeds its share evicts its own idle connections. When all of them have requests in flight, it gets another connection
 * only if its share allows this without counting the idle connections of other addresses.
 */

/** A connection that the limiter may evict. */
export interface LimitedConnection {
  /** Time since which the connection has no request in flight, as `performance.now()`; `undefined` while a request is in flight. */
  readonly idleSinceMs: number | undefined;
  /** Closes the connection to free capacity for another one. */
  evict(): void;
}

export interface ConnectionLimiterOptions {
  readonly max: number;
  /** Returns whether an address with `held` connections may open another one while `free` connections remain for all addresses. */
  readonly mayAcquire: (held: number, free: number) => boolean;
  readonly onLimitReached: (done: LimitAction) => void;
}

/** Action at the connection limit: an idle connection is evicted, or the new connection is rejected. */
export type LimitAction = "evicted" | "rejected";

/**
 * Minimum pause between two scans, in ms per connection. A scan takes about a tenth of this time per connection, so scans use at most about
 * 10 % of the CPU time.
 */
const PAUSE_MS_PER_CONNECTION = 0.005;

interface Idle {
  readonly connection: LimitedConnection;
  readonly sinceMs: number;
}

/** Result of a scan of all connections. */
interface Found {
  readonly atMs: number;
  /** Idle connections, sorted so that the longest idle one is last. */
  readonly idle: Idle[];
  /** Idle connections of each address that has a limited share, sorted so that the longest idle one is last. */
  readonly idleOf: Map<string, Idle[]>;
  busy: number;
  readonly busyOf: Map<string, number>;
}

export class ConnectionLimiter {
  readonly #options: ConnectionLimiterOptions;
  /** All connections, each with its client address; `undefined` if the connection is exempt from per-address limits. */
  readonly #connections = new Map<LimitedConnection, string | undefined>();
  /** Number of connections per address. */
  readonly #held = new Map<string, number>();
  #found: Found | undefined;

  constructor(options: ConnectionLimiterOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#connections.size;
  }

  /** Admits a connection, and evicts another one if necessary. Returns false if the connection is rejected. */
  admit(address: string | undefined): boolean {
    const { max, mayAcquire, onLimitReached } = this.#options;
    const free = max - this.#connections.size;
    const held = address === undefined ? 0 : (this.#held.get(address) ?? 0);
    if (free > 0 && (address === undefined || mayAcquire(held, free))) return true;
    const idle = this.#findIdle(address, held);
    if (idle === "none needed") return true;
    onLimitReached(idle === undefined ? "rejected" : "evicted");
    if (idle === undefined) return false;
    this.leave(idle);
    idle.evict();
    return true;
  }

  enter(connection: LimitedConnection, address: string | undefined): void {
    this.#connections.set(connection, address);
    if (address !== undefined) this.#held.set(address, (this.#held.get(address) ?? 0) + 1);
  }

  /** Unregisters a connection. Has no effect if the connection is not registered. */
  leave(connection: LimitedConnection): void {
    const address = this.#connections.get(connection);
    if (!this.#connections.delete(connection) || address === undefined) return;
    const held = this.#held.get(address) ?? 0;
    if (held > 1) this.#held.set(address, held - 1);
    else this.#held.delete(address);
  }

  /** Replaces a connection by `next`, which takes over its slot. */
  replace(connection: LimitedConnection, next: LimitedConnection): void {
    const address = this.#connections.get(connection);
    this.leave(connection);
    this.enter(next, address);
  }

  /** Returns the connection to evict for a new connection of `address`; `undefined` if the new connection must be rejected. */
  #findIdle(address: string | undefined, held: number): LimitedConnection | "none needed" | undefined {
    const { max, mayAcquire } = this.#options;
    const found = this.#look();
    if (address === undefined) return this.#longestIdle(found.idle);
    const own = held === 0 ? undefined : this.#longestIdle(found.idleOf.get(address));
    if (own !== undefined) return own;
    if (!mayAcquire(found.busyOf.get(address) ?? 0, max - found.busy)) return undefined;
    return this.#connections.size < max ? "none needed" : this.#longestIdle(found.idle);
  }

  /** Reuses the last scan: connections that became idle after it have been idle for a shorter time. */
  #longestIdle(idle: Idle[] | undefined): LimitedConnection | undefined {
    for (let next = idle?.pop(); next !== undefined; next = idle?.pop()) {
      const { connection, sinceMs } = next;
      if (this.#connections.has(connection) && connection.idleSinceMs === sinceMs) return connection;
    }
    return undefined;
  }

  #look(): Found {
    const nowMs = performance.now();
    const last = this.#found;
    if (last !== undefined && nowMs - last.atMs < PAUSE_MS_PER_CONNECTION * this.#connections.size) return last;
    const found: Found = { atMs: nowMs, idle: [], idleOf: new Map(), busy: 0, busyOf: new Map() };
    for (const [connection, address] of this.#connections) {
      const sinceMs = connection.idleSinceMs;
      if (sinceMs !== undefined) {
        found.idle.push({ connection, sinceMs });
        continue;
      }
      found.busy += 1;
      if (address !== undefined) found.busyOf.set(address, (found.busyOf.get(address) ?? 0) + 1);
    }
    found.idle.sort((a, b) => b.sinceMs - a.sinceMs);
    for (const one of found.idle) {
      const address = this.#connections.get(one.connection);
      if (address === undefined) continue;
      const own = found.idleOf.get(address);
      if (own === undefined) found.idleOf.set(address, [one]);
      else own.push(one);
    }
    this.#found = found;
    return found;
  }
}
