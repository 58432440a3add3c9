import type { Case } from "./case.ts";
import { makeCase } from "./generate.ts";
import { shrink } from "./shrink.ts";
import { type Complaint, type OpenGate, openWorld, type World } from "./world.ts";

export interface Finding {
  readonly complaint: string;
  /** The smallest case that reproduces the finding; the first one if none reproduced it alone. */
  readonly case: Case;
  /** false: it was not seen again when the case was played alone. */
  readonly isReproduced: boolean;
}

export interface FuzzReport {
  readonly cases: number;
  readonly seconds: number;
  readonly findings: readonly Finding[];
  /** Requests that reached an app. */
  readonly seen: number;
  readonly rssMaxMiB: number;
}

const AT_ONCE = 24;
const EXAMINE_MS = 300;
/** How long to search for the cause among the cases that were played at the time. */
const SEARCH_MS = 30_000;

/**
 * Plays cases of a seed for some seconds, many at once, and checks gates and apps meanwhile. Ends early at the first
 * `findingsMax` findings. Each finding is made as small as possible.
 */
export async function fuzzGate(options: {
  seed: number;
  seconds: number;
  findingsMax?: number;
  openGate?: OpenGate | undefined;
  onProgress?: (line: string) => void;
}): Promise<FuzzReport> {
  const { seed, seconds, findingsMax = 1, openGate, onProgress = () => {} } = options;
  const world = await openWorld(openGate);
  try {
    const startedMs = performance.now();
    const untilMs = startedMs + seconds * 1000;
    const findings: Finding[] = [];
    let number = 0;
    while (performance.now() < untilMs && findings.length < findingsMax) {
      const { next, suspects } = await playUntilComplaint(world, { seed, number, untilMs });
      number = next;
      const tookS = ((performance.now() - startedMs) / 1000).toFixed(1);
      onProgress(`${number} cases in ${tookS} s, ${world.seen} requests at the apps`);
      for (const { played, complaint } of suspects.slice(0, 3)) onProgress(`suspect ${played.id}: ${complaint}`);
      const finding = await findCulprit(world, suspects, onProgress);
      if (finding !== undefined) findings.push(finding);
    }
    const { seen, rssMaxMiB } = world;
    return { cases: number, seconds: (performance.now() - startedMs) / 1000, findings, seen, rssMaxMiB };
  } finally {
    await world.close();
  }
}

interface Suspect {
  readonly played: Case;
  readonly complaint: string;
}

/** Plays cases concurrently until the time is up or a complaint arrives; then returns the cases that may have caused it. */
async function playUntilComplaint(
  world: World,
  { seed, number, untilMs }: { seed: number; number: number; untilMs: number },
): Promise<{ next: number; suspects: Suspect[] }> {
  let next = number;
  const suspects: Suspect[] = [];
  /** Cases played since the last check but one, or in progress. */
  let recent = new Set<Case>();
  let lately = new Set<Case>();
  const blame = (complaint: Complaint): void => {
    const all = [...recent, ...lately].filter(({ app }) => app === complaint.app);
    const known = all.filter(({ id }) => id === complaint.caseId);
    for (const played of known.length > 0 ? known : all) suspects.push({ played, complaint: complaint.text });
  };
  async function playOneByOne(): Promise<void> {
    while (suspects.length === 0 && performance.now() < untilMs) {
      const played = makeCase(seed, next++);
      lately.add(played);
      const complaint = await world.play(played);
      lately.add(played);
      if (complaint !== undefined) suspects.unshift({ played, complaint });
    }
  }
  const playing = Promise.all(Array.from({ length: AT_ONCE }, playOneByOne));
  let isPlaying = true;
  void playing.then(() => {
    isPlaying = false;
  });
  while (isPlaying) {
    await Promise.race([playing, new Promise((resolve) => setTimeout(resolve, EXAMINE_MS))]);
    for (const complaint of await world.complaints()) blame(complaint);
    recent = lately;
    lately = new Set();
  }
  return { next, suspects };
}

/** Plays a case alone and returns what is wrong. */
export async function complaintAbout(world: World, played: Case): Promise<string | undefined> {
  const heard = await world.play(played);
  if (heard !== undefined) return heard;
  await new Promise((resolve) => setTimeout(resolve, 50));
  const complaints = await world.complaints();
  return complaints.find(({ app }) => app === played.app)?.text;
}

async function findCulprit(
  world: World,
  suspects: readonly Suspect[],
  onProgress: (line: string) => void,
): Promise<Finding | undefined> {
  const untilMs = performance.now() + SEARCH_MS;
  for (const { played } of suspects) {
    if (performance.now() > untilMs) break;
    const complaint = await complaintAbout(world, played);
    if (complaint === undefined) continue;
    onProgress(`${played.id}: ${complaint}`);
    // A different complaint would be another problem: a shortened case may be wrong in its own way.
    const kind = kindOf(complaint);
    const smallest = await shrink(played, async (smaller) => kindOf(await complaintAbout(world, smaller)) === kind);
    return { complaint, case: smallest, isReproduced: true };
  }
  // On a connection that the gate keeps open, an odd response to one request may spoil the next one, of another case. That is the
  // app's fault, unless one request got what belongs to another, which must never happen.
  const mixedUp = suspects.find(
    ({ played, complaint }) => played.app !== "raw" || /stray|got the answer/.test(complaint),
  );
  return mixedUp && { complaint: mixedUp.complaint, case: mixedUp.played, isReproduced: false };
}

/** A complaint without the parts that differ between cases. */
const kindOf = (complaint: string | undefined): string | undefined =>
  complaint?.replace(/[\da-z]+-\d+(?:\.\d+)?/g, "").replace(/:.*|\d+|"[^"]*"/gs, "");
