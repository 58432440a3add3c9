import { formatDuration } from "../core/manifests/from-store/format-duration.ts";
import type { Io } from "./command.ts";

/*
 * How far long work has come, for a person who waits: one line on the terminal that is written over, or a line every now and then where
 * standard error is a file. Nothing with `--json`, and nothing for work that is done at once.
 */

/** A person does not wonder yet. */
const QUIET_MS = 500;
/** Of the line on a terminal, and of the lines in a log. */
const REDRAWN_MS = 200;
const LOGGED_MS = 10_000;
/** Before this, how long the rest takes would be a guess. */
const ESTIMATED_AFTER_MS = 2_000;
const ERASE_LINE = "\r\u001b[K";

export interface Progress {
  /** `done` of all; `step` is what is done at the moment. Costs nothing: the line is written by a timer. */
  at(state: { done?: number; total?: number | undefined; step?: string }): void;
  /** A line of its own beside it. */
  say(line: string): void;
  /** Takes the line away. To be called however the work ends. */
  close(): void;
}

export interface Work {
  /** `re-encrypting` */
  readonly doing: string;
  /** `keys` */
  readonly resources?: string;
}

/** Runs the work, which tells how far it is, and takes the line away when it ends or fails. */
export async function withProgress<T>(
  io: Pick<Io, "note" | "screen">,
  { json = false }: { readonly json?: boolean },
  work: Work,
  run: (progress: Progress) => Promise<T>,
): Promise<T> {
  const progress = json ? { at: () => undefined, say: io.note, close: () => undefined } : openProgress(io, work);
  try {
    return await run(progress);
  } finally {
    progress.close();
  }
}

/** What is made before the work that was asked for can begin, as at a first start. */
export interface FirstWork {
  /** `building the dashboard` */
  readonly doing: string;
  /** As a person says it: `about 4 minutes`. */
  readonly takes: string;
}

/**
 * Runs work that cannot tell how far it is: one line when it begins, one when it is done, the same on a terminal and in a file. Nothing
 * with `--json`, and no second line for work that fails, whose error is told.
 */
export async function withNotice<T>(
  { note }: Pick<Io, "note">,
  { json = false }: { readonly json?: boolean },
  { doing, takes }: FirstWork,
  run: () => Promise<T>,
): Promise<T> {
  if (json) return run();
  const startedMs = performance.now();
  note(`${doing}; this takes ${takes}`);
  const made = await run();
  note(`${doing}: done after ${inSeconds(performance.now() - startedMs)}`);
  return made;
}

function openProgress({ note, screen }: Pick<Io, "note" | "screen">, work: Work): Progress {
  const startedMs = performance.now();
  let state: { done?: number; total?: number | undefined; step?: string } = {};
  let isDrawn = false;
  let loggedMs = startedMs;
  const tell = (): void => {
    const nowMs = performance.now();
    if (nowMs - startedMs < QUIET_MS) return;
    const line = progressLine(work, { ...state, elapsedMs: nowMs - startedMs });
    if (screen !== undefined) {
      // A longer line would wrap, and could not be written over.
      screen.write(`${ERASE_LINE}${[...line].slice(0, Math.max(1, screen.columns - 1)).join("")}`);
      isDrawn = true;
    } else if (nowMs - loggedMs >= LOGGED_MS) {
      note(line);
      loggedMs = nowMs;
    }
  };
  const erase = (): void => {
    if (isDrawn) screen?.write(ERASE_LINE);
    isDrawn = false;
  };
  const timer = setInterval(tell, REDRAWN_MS);
  timer.unref();
  return {
    at: (now) => {
      state = { ...state, ...now };
    },
    say: (line) => {
      erase();
      note(line);
    },
    close: () => {
      clearInterval(timer);
      erase();
    },
  };
}

/** `re-encrypting: 1500 of 6000 keys, 25 %, 12s, about 36s left` */
export function progressLine(
  { doing, resources = "" }: Work,
  { done, total, step, elapsedMs }: { done?: number; total?: number | undefined; step?: string; elapsedMs: number },
): string {
  // What was counted before may have grown meanwhile.
  const all = total === undefined || done === undefined ? undefined : Math.max(total, done);
  const share = all === undefined || done === undefined || all === 0 ? undefined : done / all;
  const remainingMs =
    share === undefined || share === 0 || elapsedMs < ESTIMATED_AFTER_MS ? 0 : (elapsedMs / share) * (1 - share);
  const parts = [
    ...(done === undefined ? [] : [`${done}${all === undefined ? "" : ` of ${all}`} ${resources}`.trimEnd()]),
    ...(share === undefined ? [] : [`${Math.floor(share * 100)} %`]),
    ...(step === undefined ? [] : [step]),
    inSeconds(elapsedMs),
    ...(remainingMs < 1000 ? [] : [`about ${inSeconds(remainingMs)} left`]),
  ];
  return `${doing}: ${parts.join(", ")}`;
}

const inSeconds = (ms: number): string => formatDuration(Math.round(ms / 1000) * 1000);
