import { formatDuration } from "../core/manifests/from-store/format-duration.ts";
import type { Io } from "./command.ts";

/*
 * Shows the progress of long work: one line that is overwritten on a terminal, or occasional lines in a file. Shows nothing with `--json`
 * or for short work.
 */

/** Delay before the first progress line. */
const QUIET_MS = 500;
/** Update interval of the progress line on a terminal, and minimum time between two lines if the output is not a terminal. */
const REDRAWN_MS = 200;
const LOGGED_MS = 10_000;
/** Time before the progress line contains an estimate. */
const ESTIMATED_AFTER_MS = 2_000;
const ERASE_LINE = "\r\u001b[K";

export interface Progress {
  /** Sets the progress; `step` is the current step. The call is cheap, because a timer writes the line. */
  at(state: { done?: number; total?: number | undefined; step?: string }): void;
  /** Writes a separate line above the progress line. */
  say(line: string): void;
  /** Removes the progress line. Callers must always call `close`. */
  close(): void;
}

export interface Work {
  /** Name of the activity, such as `re-encrypting`. */
  readonly doing: string;
  /** Noun for the counted resources, such as `keys`. */
  readonly resources?: string;
}

/** Runs work that reports its progress. Removes the progress line at the end and after a failure. */
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

/** Preparation before the actual work, such as a build at the first start. */
export interface FirstWork {
  /** Name of the activity, such as `building the dashboard`. */
  readonly doing: string;
  /** Expected duration, such as `about 4 minutes`. */
  readonly takes: string;
}

/**
 * Runs work without known progress: writes one line at the start and one at the end. Writes nothing with `--json`, and no end line after a
 * failure.
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
      // The line is cut to the width of the terminal, because a wrapped line cannot be overwritten.
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

/** Formats a progress line such as `re-encrypting: 1500 of 6000 keys, 25 %, 12s, about 36s left`. */
export function progressLine(
  { doing, resources = "" }: Work,
  { done, total, step, elapsedMs }: { done?: number; total?: number | undefined; step?: string; elapsedMs: number },
): string {
  // The total may have grown since it was counted.
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
