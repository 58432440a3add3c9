/*
 * How the memory that event streams may take is shared. Each workspace has room for what it may still write; its script counts
 * that down, and room that is made by reading is given back. bytes + room is what a workspace may take at most, and
 *
 *   the sum of max(bytes, bytes + room) over all workspaces never grows past the total,
 *
 * because room is only given where it is free, and taken away before it is given to another. Half of the total is each
 * workspace's own, in equal parts; the other half goes to those that need it.
 */

export interface StreamUse {
  readonly workspaceId: string;
  /** That the stream takes now. */
  readonly bytes: number;
  /** That may be added; negative where more was added than may be now. */
  readonly roomBytes: number;
}

/** The smallest part of a target for which it is worth changing anything. */
const WORTH = 1 / 64;

/**
 * By workspace: how many bytes of room to add or, where negative, to take away; only those where something changes. What a
 * workspace has too much of is left to it for as long as no other needs it.
 */
export function shareRoom(totalBytes: number, uses: readonly StreamUse[]): Map<string, number> {
  const changes = new Map<string, number>();
  if (uses.length === 0) return changes;
  const own = totalBytes / 2 / uses.length;
  const busy = uses.filter(({ bytes }) => bytes > own / 2).length;
  const targetOf = ({ bytes }: StreamUse) => (bytes > own / 2 ? own + totalBytes / 2 / busy : own);
  const wantOf = (use: StreamUse) => worth(targetOf(use) - limitOf(use), targetOf(use));
  const excessOf = (use: StreamUse) => worth(limitOf(use) - targetOf(use), targetOf(use));

  const taken = sum(uses, (use) => Math.max(use.bytes, limitOf(use)));
  const wanted = sum(uses, wantOf);
  const free = Math.max(0, totalBytes - taken);
  const given = wanted === 0 ? 0 : Math.min(1, free / wanted);
  const excess = sum(uses, excessOf);
  const short = Math.max(0, wanted + taken - totalBytes);
  const takenAway = excess === 0 ? 0 : Math.min(1, short / excess);
  for (const use of uses) {
    const change = Math.floor(wantOf(use) * given) - Math.ceil(excessOf(use) * takenAway);
    if (change !== 0) changes.set(use.workspaceId, change);
  }
  return changes;
}

export interface Trim {
  readonly workspaceId: string;
  /** The part of its entries that stays. */
  readonly keptPart: number;
}

/**
 * What has to go when the streams take more than the total, which only a writer brings about that does not count: of those
 * that take more than an equal part, each the same portion of what is beyond it.
 */
export function trimOver(totalBytes: number, uses: readonly StreamUse[]): Trim[] {
  const over = sum(uses, ({ bytes }) => bytes) - totalBytes;
  if (over <= 0) return [];
  const part = totalBytes / uses.length;
  const beyond = sum(uses, ({ bytes }) => Math.max(0, bytes - part));
  return uses
    .filter(({ bytes }) => bytes > part)
    .map(({ workspaceId, bytes }) => ({ workspaceId, keptPart: 1 - (over * ((bytes - part) / beyond)) / bytes }));
}

const limitOf = ({ bytes, roomBytes }: StreamUse): number => bytes + roomBytes;

const worth = (bytes: number, targetBytes: number): number => (bytes > targetBytes * WORTH ? bytes : 0);

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0);
