/*
 * Distributes the memory for event streams. Each workspace has a quota of bytes that it may still write: the script that writes subtracts
 * from the quota, and the script that removes entries adds to it. A workspace may use at most bytes + quota, and
 *
 *   the sum of max(bytes, bytes + quota) over all workspaces never exceeds the total,
 *
 * because quota is granted only from free memory, and taken from one workspace before it is granted to another. Half of the total
 * is reserved in equal shares, one for each workspace; the other half goes to workspaces that need more.
 */

export interface StreamUse {
  readonly workspaceId: string;
  /** Bytes that the stream occupies now. */
  readonly bytes: number;
  /** Bytes that may be added; negative if more was added than is allowed now. */
  readonly capacityBytes: number;
}

/** Smallest change that is applied, as a fraction of the target. */
const WORTH = 1 / 64;

/**
 * Returns by how many bytes to change each workspace's quota; a reduction is negative. Omits workspaces without a change. A workspace keeps
 * excess quota until another needs it.
 */
export function shareQuota(totalBytes: number, uses: readonly StreamUse[]): Map<string, number> {
  const changes = new Map<string, number>();
  if (uses.length === 0) return changes;
  const own = totalBytes / 2 / uses.length;
  const busy = uses.filter(({ bytes }) => bytes > own / 2).length;
  const targetOf = ({ bytes }: StreamUse) => (bytes > own / 2 ? own + totalBytes / 2 / busy : own);
  const shortfallOf = (use: StreamUse) => worth(targetOf(use) - limitOf(use), targetOf(use));
  const excessOf = (use: StreamUse) => worth(limitOf(use) - targetOf(use), targetOf(use));

  const taken = sum(uses, (use) => Math.max(use.bytes, limitOf(use)));
  const requested = sum(uses, shortfallOf);
  const free = Math.max(0, totalBytes - taken);
  const given = requested === 0 ? 0 : Math.min(1, free / requested);
  const excess = sum(uses, excessOf);
  const short = Math.max(0, requested + taken - totalBytes);
  const takenAway = excess === 0 ? 0 : Math.min(1, short / excess);
  for (const use of uses) {
    const change = Math.floor(shortfallOf(use) * given) - Math.ceil(excessOf(use) * takenAway);
    if (change !== 0) changes.set(use.workspaceId, change);
  }
  return changes;
}

export interface Trim {
  readonly workspaceId: string;
  /** Fraction of the stream's entries to keep. */
  readonly keptShare: number;
}

/**
 * Returns how much to trim if the streams use more than the total, which happens only if a writer ignores its quota. Each workspace above
 * its equal share loses the same fraction of its excess.
 */
export function trimOver(totalBytes: number, uses: readonly StreamUse[]): Trim[] {
  const over = sum(uses, ({ bytes }) => bytes) - totalBytes;
  if (over <= 0) return [];
  const part = totalBytes / uses.length;
  const beyond = sum(uses, ({ bytes }) => Math.max(0, bytes - part));
  return uses
    .filter(({ bytes }) => bytes > part)
    .map(({ workspaceId, bytes }) => ({ workspaceId, keptShare: 1 - (over * ((bytes - part) / beyond)) / bytes }));
}

const limitOf = ({ bytes, capacityBytes }: StreamUse): number => bytes + capacityBytes;

const worth = (bytes: number, targetBytes: number): number => (bytes > targetBytes * WORTH ? bytes : 0);

const sum = <T>(items: readonly T[], of: (item: T) => number): number =>
  items.reduce((total, item) => total + of(item), 0);
