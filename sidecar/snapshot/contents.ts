import * as z from "zod";
import type { Known, Restored } from "../../edge/projection/contract.ts";
import { RECORD_KINDS } from "../../edge/records.ts";
import { elapsedMs, type HostMoment } from "./host-clock.ts";

/*
 * What a snapshot says: a line of JSON about the whole, and a line for each record, `[kind, id, value]`, without the value when the record is
 * gone. A secret of ours is in none of them: a key is named by its hash.
 */

/** A slice is made at once; requests are served between two of them. */
const SLICE_CHARACTERS = 32 * 1024;
/** What was not read by then is read from the store, as if it had not been there. */
const READ_MS_MAX = 500;

const Head = z.object({
  position: z.object({ projectionId: z.string(), n: z.number(), entryId: z.string() }),
  stalenessMs: z.number().nonnegative(),
  taken: z.object({ bootId: z.string(), monotonicMs: z.number(), wallMs: z.number() }),
  /** The shared store's clock at that moment. */
  storeMs: z.number(),
  /** How many pods enforced the policy then; 0 for never heard of. */
  podsAlive: z.number(),
});
type Head = z.infer<typeof Head>;

const Line = z.tuple([z.enum(RECORD_KINDS), z.string()]).rest(z.unknown());

export interface Taken extends Known {
  readonly taken: HostMoment;
  readonly storeMs: number;
  readonly podsAlive: number;
}

/** What was written of a snapshot, filled in while its slices are made. */
export interface Written {
  records: number;
  bytes: number;
  /** For which there was no room. */
  leftOut: number;
}

/** Slices of text, of at most `bytesMax` together. Records that keys refer to come before keys, so that they have room. */
export function* toSlices(snapshot: Taken, bytesMax: number, written: Written): Iterable<string> {
  const { position, stalenessMs, taken, storeMs, podsAlive } = snapshot;
  let slice = "";
  const take = (line: string): boolean => {
    const bytes = Buffer.byteLength(line);
    if (written.bytes + bytes > bytesMax) return false;
    written.bytes += bytes;
    slice += line;
    return true;
  };
  const flush = (): string => {
    const full = slice;
    slice = "";
    return full;
  };
  take(lineOf({ position, stalenessMs, taken, storeMs, podsAlive } satisfies Head));
  const records = [...snapshot.records];
  for (const isOfKeys of [false, true]) {
    for (const { kind, id, value } of records) {
      if ((kind === "key") !== isOfKeys) continue;
      if (take(lineOf(value === undefined ? [kind, id] : [kind, id, value]))) written.records += 1;
      else written.leftOut += 1;
      if (slice.length >= SLICE_CHARACTERS) yield flush();
    }
  }
  yield flush();
}

const lineOf = (value: unknown): string => `${JSON.stringify(value)}\n`;

export interface RestoredKnowledge extends Restored {
  /** The shared store's clock by now, at least: what has expired by it has expired. */
  readonly storeNowMs: () => number;
  readonly podsAlive: number;
}

/** Throws when the text is none of ours. Returns undefined when it is not certain how old it is. */
export function fromContents(contents: Buffer, now: HostMoment | undefined): RestoredKnowledge | undefined {
  const lines = linesOf(contents);
  const { position, stalenessMs, taken, storeMs, podsAlive } = Head.parse(JSON.parse(lines.next().value ?? ""));
  const elapsed = elapsedMs(taken, now);
  if (elapsed === undefined) return undefined;
  const ageMs = ageFrom(elapsed);
  return {
    position,
    stalenessMs: () => stalenessMs + ageMs(),
    storeNowMs: () => storeMs + ageMs(),
    podsAlive,
    records: recordsOf(lines),
  };
}

/** Goes on from this age by this process' own clocks, which cost less to read. */
function ageFrom(elapsed: number): () => number {
  const [monotonicMs, wallMs] = [performance.now(), Date.now()];
  return () => elapsed + Math.max(performance.now() - monotonicMs, Date.now() - wallMs);
}

function* recordsOf(lines: Iterable<string>): Restored["records"] {
  const untilMs = performance.now() + READ_MS_MAX;
  for (const line of lines) {
    const read = readLine(line);
    // What is left out here is only not known.
    if (read === undefined || performance.now() > untilMs) return;
    const [kind, id, value] = read;
    yield { kind, id, value, length: line.length };
  }
}

function readLine(line: string): z.infer<typeof Line> | undefined {
  try {
    return Line.safeParse(JSON.parse(line)).data;
  } catch {
    return undefined;
  }
}

function* linesOf(contents: Buffer): Generator<string, undefined> {
  for (let at = 0; at < contents.length; ) {
    const found = contents.indexOf(10, at);
    const end = found === -1 ? contents.length : found;
    yield contents.toString("utf8", at, end);
    at = end + 1;
  }
}
