/*
 * How the memory for event streams is shared. Each workspace has room for what it may still write; the script that writes subtracts
 * from it, and the script that removes entries adds to it. bytes + room is the most that a workspace may use, and
 *
 *   the sum of max(bytes, bytes + room) over all workspaces never exceeds the total,
 *
 * because room is granted only from free memory, and taken from one workspace before it is granted to another. Half of the total
 * is reserved in equal parts, one for each workspace; the other half goes to workspaces that need more.
 */

export interface StreamUse {
  readonly workspaceId: string;
  /** Bytes that the stream uses now. */
  readonly bytes: number;
  /** Bytes that may be added; negative when more was added than may be used now. */
  readonly roomBytes: number;
}

/** The smallest change that is worth making, as a part of the target. */
const WORTH = 1 / 64;

/**
 * Returns by workspace how many bytes of room to add or, if negative, to take away; only workspaces that change. Excess room stays
 * with a workspace as long as no other needs it.
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
  /** The part of its entries that is kept. */
  readonly keptPart: number;
}

/**
 * Returns what must be removed when the streams use more than the total, which happens only if a writer ignores its room. Each
 * workspace above its equal part loses the same share of its excess.
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
