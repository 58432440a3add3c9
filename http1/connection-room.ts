/*
 * How many connections a server keeps. Until there is no room nothing is done but counting. Then the connection that has asked for nothing
 * for the longest time makes room for the next one, so that connections that are only held lock out no client; and when there is no such
 * one, the next one is refused.
 *
 * An address whose connections are more than its share makes room for its next one itself. When all of them have requests under way, it gets
 * another only if its share is that large once the connections of others that ask for nothing are left out.
 */

/** A connection, as far as its room is concerned. */
export interface Guest {
  /** Since when no request of it is under way, by `performance.now()`; undefined while one is. */
  readonly idleSinceMs: number | undefined;
  /** Closes it, because another one needs the room. */
  makeRoom(): void;
}

export interface RoomOptions {
  readonly max: number;
  /** Whether an address with `held` connections may have another one, when `free` are left for all. */
  readonly mayHold: (held: number, free: number) => boolean;
  readonly onCrowded: (done: Crowded) => void;
}

/** What was done when there was no room: an idle connection was closed, or the new one. */
export type Crowded = "displaced" | "refused";

/** Looking at all connections takes about a tenth of this for each. It is done only as often as that is a small part of the time. */
const PAUSE_MS_PER_GUEST = 0.005;

interface Idle {
  readonly guest: Guest;
  readonly sinceMs: number;
}

/** What a look at all connections found. */
interface Found {
  readonly atMs: number;
  /** The longest idle last. */
  readonly idle: Idle[];
  /** Those of each address that has a share, the longest idle last. */
  readonly idleOf: Map<string, Idle[]>;
  busy: number;
  readonly busyOf: Map<string, number>;
}

export class ConnectionRoom {
  readonly #options: RoomOptions;
  /** With the address whose share they are of; undefined for those of none. */
  readonly #guests = new Map<Guest, string | undefined>();
  /** Of addresses that have some. */
  readonly #held = new Map<string, number>();
  #found: Found | undefined;

  constructor(options: RoomOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#guests.size;
  }

  /** Finds room for a connection, which then enters; another one may be closed for it. Returns false when it is refused. */
  makeRoomFor(address: string | undefined): boolean {
    const { max, mayHold, onCrowded } = this.#options;
    const free = max - this.#guests.size;
    const held = address === undefined ? 0 : (this.#held.get(address) ?? 0);
    if (free > 0 && (address === undefined || mayHold(held, free))) return true;
    const displaced = this.#findIdle(address, held);
    if (displaced === "none needed") return true;
    onCrowded(displaced === undefined ? "refused" : "displaced");
    if (displaced === undefined) return false;
    this.leave(displaced);
    displaced.makeRoom();
    return true;
  }

  enter(guest: Guest, address: string | undefined): void {
    this.#guests.set(guest, address);
    if (address !== undefined) this.#held.set(address, (this.#held.get(address) ?? 0) + 1);
  }

  /** Does nothing when it is not there. */
  leave(guest: Guest): void {
    const address = this.#guests.get(guest);
    if (!this.#guests.delete(guest) || address === undefined) return;
    const held = this.#held.get(address) ?? 0;
    if (held > 1) this.#held.set(address, held - 1);
    else this.#held.delete(address);
  }

  /** `guest` goes on as `next`. */
  replace(guest: Guest, next: Guest): void {
    const address = this.#guests.get(guest);
    this.leave(guest);
    this.enter(next, address);
  }

  /** Who makes room for one more connection of `address`; undefined when it may not have one. */
  #findIdle(address: string | undefined, held: number): Guest | "none needed" | undefined {
    const { max, mayHold } = this.#options;
    const found = this.#look();
    if (address === undefined) return this.#longestIdle(found.idle);
    const own = held === 0 ? undefined : this.#longestIdle(found.idleOf.get(address));
    if (own !== undefined) return own;
    if (!mayHold(found.busyOf.get(address) ?? 0, max - found.busy)) return undefined;
    return this.#guests.size < max ? "none needed" : this.#longestIdle(found.idle);
  }

  /** Those that became idle since the look have been so for a shorter time than those that it found. */
  #longestIdle(idle: Idle[] | undefined): Guest | undefined {
    for (let next = idle?.pop(); next !== undefined; next = idle?.pop()) {
      const { guest, sinceMs } = next;
      if (this.#guests.has(guest) && guest.idleSinceMs === sinceMs) return guest;
    }
    return undefined;
  }

  #look(): Found {
    const nowMs = performance.now();
    const last = this.#found;
    if (last !== undefined && nowMs - last.atMs < PAUSE_MS_PER_GUEST * this.#guests.size) return last;
    const found: Found = { atMs: nowMs, idle: [], idleOf: new Map(), busy: 0, busyOf: new Map() };
    for (const [guest, address] of this.#guests) {
      const sinceMs = guest.idleSinceMs;
      if (sinceMs !== undefined) {
        found.idle.push({ guest, sinceMs });
        continue;
      }
      found.busy += 1;
      if (address !== undefined) found.busyOf.set(address, (found.busyOf.get(address) ?? 0) + 1);
    }
    found.idle.sort((a, b) => b.sinceMs - a.sinceMs);
    for (const one of found.idle) {
      const address = this.#guests.get(one.guest);
      if (address === undefined) continue;
      const own = found.idleOf.get(address);
      if (own === undefined) found.idleOf.set(address, [one]);
      else own.push(one);
    }
    this.#found = found;
    return found;
  }
}
