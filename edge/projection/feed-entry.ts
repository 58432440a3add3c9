import { RECORD_KINDS, type RecordKind } from "../records.ts";

/*
 * One entry of a change stream in Redis: fields p (projection id), n (number), k (what it is), and
 *
 *   a change      k = a record kind, i = the record's id, w = its workspace (needed on the central feed), v = its version
 *   a heartbeat   k = "heartbeat", t = the time, and on the central feed perhaps l: the workspaces that lag
 *   a beginning   k = "begin", n = 0, f = "0" when what was missed before is announced again (no former release did)
 *
 * Other processes write to the stream, also of other releases, so each entry is checked before it is used.
 */

export type FeedEntry =
  | { readonly kind: "begin"; readonly projectionId: string; readonly n: number; readonly forget: boolean }
  | { readonly kind: "unknown"; readonly projectionId: string; readonly n: number }
  | {
      readonly kind: "change";
      readonly projectionId: string;
      readonly n: number;
      /** "" on the feed of one workspace, where it is implied. */
      readonly workspaceId: string;
      readonly recordKind: RecordKind;
      readonly id: string;
    }
  | {
      readonly kind: "heartbeat";
      readonly projectionId: string;
      readonly n: number;
      /** undefined: the times cannot be read. The entry still counts in the numbering. */
      readonly said: HeartbeatTimes | undefined;
    }
  /** Not even its number can be read, so it may have been a change. */
  | { readonly kind: "unreadable"; readonly problem: string };

export interface HeartbeatTimes {
  readonly asOfMs: number;
  readonly lagging: ReadonlyMap<string, number>;
}

/** `fields` are names and values alternating, as Redis lists them. Of two equal names the last counts. */
export function readFeedEntry(fields: readonly string[], { isCentral }: { isCentral: boolean }): FeedEntry {
  const texts = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2) texts.set(fields[at] ?? "", fields[at + 1] ?? "");
  const [projectionId = "", name = ""] = [texts.get("p"), texts.get("k")];
  const n = readWhole(texts.get("n"));
  if (!isProjectionId(projectionId)) return { kind: "unreadable", problem: "p is no projection id" };
  if (n === undefined) return { kind: "unreadable", problem: "n is no number" };
  const place = { projectionId, n };
  if (name === "begin") return { kind: "begin", ...place, forget: texts.get("f") !== "0" };
  if (name === "heartbeat")
    return { kind: "heartbeat", ...place, said: readTimes(texts.get("t"), texts.get("l"), isCentral) };
  const recordKind = RECORD_KINDS.find((kind) => kind === name);
  const id = texts.get("i");
  if (recordKind !== undefined) {
    if (id === undefined) return { kind: "unreadable", problem: `a change of a ${recordKind} names none` };
    const workspaceId = texts.get("w") ?? "";
    if (isCentral && workspaceId === "") return { kind: "unreadable", problem: "a change names no workspace" };
    return { kind: "change", ...place, workspaceId, recordKind, id };
  }
  // A kind of a later release. This release has nothing of that kind cached.
  if (/^[a-zA-Z]{1,32}$/.test(name)) return { kind: "unknown", ...place };
  return { kind: "unreadable", problem: "k is no kind of record" };
}

/** Reads a whole number that is exact as a double, written in digits only as by the relay. Returns undefined for anything else. */
export function readWhole(text: string | null | undefined): number | undefined {
  return text != null && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export const isProjectionId = (text: string): boolean => /^\S{1,64}$/.test(text);

function readTimes(
  time: string | undefined,
  laggingText: string | undefined,
  isCentral: boolean,
): HeartbeatTimes | undefined {
  // The feed of one workspace has no other workspaces.
  if (!isCentral && laggingText !== undefined) return undefined;
  const asOfMs = readWhole(time);
  const lagging = asOfMs === undefined ? undefined : readLagging(laggingText, asOfMs);
  return asOfMs === undefined || lagging === undefined ? undefined : { asOfMs, lagging };
}

/** `<workspace>=<time> …`: one space between, no workspace twice, no time after the heartbeat's. Returns undefined when invalid. */
function readLagging(text: string | undefined, asOfMs: number): ReadonlyMap<string, number> | undefined {
  const lagging = new Map<string, number>();
  for (const part of text ? text.split(" ") : []) {
    const equals = part.indexOf("=");
    const [workspaceId, ms] = [part.slice(0, Math.max(0, equals)), readWhole(part.slice(equals + 1))];
    if (workspaceId === "" || ms === undefined || ms > asOfMs || lagging.has(workspaceId)) return undefined;
    lagging.set(workspaceId, ms);
  }
  return lagging;
}
