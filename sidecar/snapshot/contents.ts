import * as z from "zod";
import type { Known, Restored } from "../../edge/projection/contract.ts";
import { RECORD_KINDS } from "../../edge/records.ts";
import { elapsedMs, type HostTimestamp } from "./host-clock.ts";

/*
 * Format of a snapshot: a line of JSON with metadata, then a line `[kind, id, value]` for each record, without the value for a deleted
 * record. A snapshot contains no secrets of Postern: it identifies a key by its hash.
 */

/** Length of a slice of text. One slice is created synchronously; between two slices, the gate serves requests. */
const SLICE_CHARACTERS = 32 * 1024;
/** Maximum time for parsing a snapshot. Records that are not parsed by then are not restored; the gate reads them from the store. */
const READ_MS_MAX = 500;

const Head = z.object({
  position: z.object({ projectionId: z.string(), n: z.number(), entryId: z.string() }),
  stalenessMs: z.number().nonnegative(),
  taken: z.object({ bootId: z.string(), monotonicMs: z.number(), wallMs: z.number() }),
  /** Time of the shared store's clock when the snapshot was taken. */
  storeMs: z.number(),
  /** Number of pods that enforced the policy when the snapshot was taken; 0 if the number was unknown. */
  podsAlive: z.number(),
});
type Head = z.infer<typeof Head>;

const Line = z.tuple([z.enum(RECORD_KINDS), z.string()]).rest(z.unknown());

export interface Taken extends Known {
  readonly taken: HostTimestamp;
  readonly storeMs: number;
  readonly podsAlive: number;
}

/** Counts of the records of a snapshot, updated while its slices are created. */
export interface Written {
  records: number;
  bytes: number;
  /** Number of records that did not fit into the snapshot. */
  omitted: number;
}

/** Returns slices of text with at most `bytesMax` bytes in total. Records that keys refer to come before the keys, so that they fit. */
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
      else written.omitted += 1;
      if (slice.length >= SLICE_CHARACTERS) yield flush();
    }
  }
  yield flush();
}

const lineOf = (value: unknown): string => `${JSON.stringify(value)}\n`;

export interface RestoredState extends Restored {
  /** Returns a lower bound of the shared store's current time. A record that has expired by this time has expired in the store too. */
  readonly storeNowMs: () => number;
  readonly podsAlive: number;
}

/**
 * Restores state from a snapshot. Throws if the contents are not a snapshot; returns `undefined` if the age of the snapshot is uncertain.
 */
export function fromContents(contents: Buffer, now: HostTimestamp | undefined): RestoredState | undefined {
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

/**
 * Returns a function that returns the current age: `elapsed` plus the time since this call. It reads this process's clocks, which are
 * cheaper to read than the host clock.
 */
function ageFrom(elapsed: number): () => number {
  const [monotonicMs, wallMs] = [performance.now(), Date.now()];
  return () => elapsed + Math.max(performance.now() - monotonicMs, Date.now() - wallMs);
}

function* recordsOf(lines: Iterable<string>): Restored["records"] {
  const untilMs = performance.now() + READ_MS_MAX;
  for (const line of lines) {
    const read = readLine(line);
    // Skips the remaining records; the gate reads them from the store when requests need them.
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
