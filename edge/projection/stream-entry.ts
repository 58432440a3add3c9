import { RECORD_KINDS, type RecordKind } from "../records.ts";

/*
 * One entry of a change stream in Redis: fields p (projection id), n (number), k (kind), and
 *
 *   a change      k = a record kind, i = the record's id, w = its workspace (required on the global stream), v = its version
 *   a heartbeat   k = "heartbeat", t = the time, and on the global stream optionally l: the lagging workspaces
 *   a beginning   k = "begin", n = 0, f = "0" if changes missed before are announced again
 *
 * The history has the same entries, each in the field of its number, as a JSON array of the entry's stream id and its fields
 * except p and n.
 *
 * Other processes write to the stream, including other versions, so each entry is validated before use.
 */

export type StreamEntry =
  | { readonly kind: "begin"; readonly projectionId: string; readonly n: number; readonly forget: boolean }
  | { readonly kind: "unknown"; readonly projectionId: string; readonly n: number }
  | {
      readonly kind: "change";
      readonly projectionId: string;
      readonly n: number;
      /** Workspace of the record; empty on the stream of one workspace, whose entries all concern that workspace. */
      readonly workspaceId: string;
      readonly recordKind: RecordKind;
      readonly id: string;
    }
  | {
      readonly kind: "heartbeat";
      readonly projectionId: string;
      readonly n: number;
      /** Times of the heartbeat; `undefined` if they are unreadable. The entry still counts for the numbering. */
      readonly said: HeartbeatTimes | undefined;
    }
  /** The number of the entry is unreadable too. The entry may have been a change. */
  | { readonly kind: "unreadable"; readonly problem: string };

export interface HeartbeatTimes {
  readonly asOfMs: number;
  readonly lagging: ReadonlyMap<string, number>;
}

/** Parses an entry. `fields` alternates names and values, as in Redis replies. If a name occurs several times, its last value applies. */
export function readStreamEntry(fields: readonly string[], { isGlobal }: { isGlobal: boolean }): StreamEntry {
  const texts = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2) texts.set(fields[at] ?? "", fields[at + 1] ?? "");
  const [projectionId = "", name = ""] = [texts.get("p"), texts.get("k")];
  const n = readInteger(texts.get("n"));
  if (!isProjectionId(projectionId)) return { kind: "unreadable", problem: "p is no projection id" };
  if (n === undefined) return { kind: "unreadable", problem: "n is no number" };
  const place = { projectionId, n };
  if (name === "begin") return { kind: "begin", ...place, forget: texts.get("f") !== "0" };
  if (name === "heartbeat")
    return { kind: "heartbeat", ...place, said: readTimes(texts.get("t"), texts.get("l"), isGlobal) };
  const recordKind = RECORD_KINDS.find((kind) => kind === name);
  const id = texts.get("i");
  if (recordKind !== undefined) {
    if (id === undefined) return { kind: "unreadable", problem: `a change of a ${recordKind} names none` };
    const workspaceId = texts.get("w") ?? "";
    if (isGlobal && workspaceId === "") return { kind: "unreadable", problem: "a change names no workspace" };
    return { kind: "change", ...place, workspaceId, recordKind, id };
  }
  // A newer version may have further kinds of records. This version never caches them.
  if (/^[a-zA-Z]{1,32}$/.test(name)) return { kind: "unknown", ...place };
  return { kind: "unreadable", problem: "k is no kind of record" };
}

/** Returns the entry's id and its fields except p and n; `undefined` if the text is not a history entry. */
export function readHistoryEntry(text: string | null): [id: string, ...fields: string[]] | undefined {
  try {
    const [id, ...fields]: unknown[] = JSON.parse(text ?? "[]");
    const isEntry =
      typeof id === "string" && /^\d+-\d+$/.test(id) && fields.every((field) => typeof field === "string");
    return isEntry ? [id, ...fields] : undefined;
  } catch {
    return undefined;
  }
}

/** Parses an integer that a double represents exactly, written in digits only. Returns `undefined` for any other text. */
export function readInteger(text: string | null | undefined): number | undefined {
  return text != null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export const isProjectionId = (text: string): boolean => /^\S{1,64}$/.test(text);

function readTimes(
  time: string | undefined,
  laggingText: string | undefined,
  isGlobal: boolean,
): HeartbeatTimes | undefined {
  // On the stream of one workspace, heartbeats have no list of lagging workspaces.
  if (!isGlobal && laggingText !== undefined) return undefined;
  const asOfMs = readInteger(time);
  const lagging = asOfMs === undefined ? undefined : readLagging(laggingText, asOfMs);
  return asOfMs === undefined || lagging === undefined ? undefined : { asOfMs, lagging };
}

/**
 * Parses `<workspace>=<time> …`. Pairs are separated by one space. No workspace may occur twice, and no time may be later than that of the
 * heartbeat. Returns `undefined` for any other text.
 */
function readLagging(text: string | undefined, asOfMs: number): ReadonlyMap<string, number> | undefined {
  const lagging = new Map<string, number>();
  for (const part of text ? text.split(" ") : []) {
    const equals = part.indexOf("=");
    const [workspaceId, ms] = [part.slice(0, Math.max(0, equals)), readInteger(part.slice(equals + 1))];
    if (workspaceId === "" || ms === undefined || ms > asOfMs || lagging.has(workspaceId)) return undefined;
    lagging.set(workspaceId, ms);
  }
  return lagging;
}
