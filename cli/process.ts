import { type Logger, pino } from "pino";
import { type Io, UsageError } from "./command.ts";
import { findUnknownVariables } from "./environment.ts";
import { toTextLine } from "./log-text.ts";
import { LOG_LEVELS } from "./variables.ts";

/**
 * Returns the parts of an error to log: message, stack and causes. Errors from libraries also reference connections, requests and
 * statements, which are long and may contain secrets.
 */
function errorToLog(error: unknown): unknown {
  if (!(error instanceof Error)) return String(error);
  const { name, message, stack, cause } = error;
  const code = "code" in error ? String(error.code) : undefined;
  return { name, message, code, stack, ...(cause === undefined ? {} : { cause: errorToLog(cause) }) };
}

/** Returns the log level. Throws `UsageError` if POSTERN_LOG_LEVEL is invalid. */
function levelOf({ POSTERN_LOG_LEVEL: said = "" }: Io["env"]): string {
  if (said === "") return "info";
  const level = LOG_LEVELS.find((one) => one === said);
  if (level !== undefined) return level;
  throw new UsageError(`invalid value "${said}" for POSTERN_LOG_LEVEL: must be ${LOG_LEVELS.join(" or ")}`);
}

export type LogFormat = "json" | "text";

/**
 * Returns a logger that writes to standard error, one JSON object or one line of text per entry. Standard output has only the command's
 * result.
 */
export function openLog(name: string, env: Io["env"], format: LogFormat = "json"): Logger {
  const options = { level: levelOf(env), base: { name }, serializers: { err: errorToLog } };
  const output = pino.destination({ fd: 2, sync: true });
  if (format === "json") return pino(options, output);
  return pino(options, { write: (line) => void output.write(`${toTextLine(line.trimEnd())}\n`) });
}

/** Resolves with the name of the first signal, SIGTERM or SIGINT. A second signal ends the process immediately. */
export function untilSignalled(): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let signalled = false;
    const onSignal = (signal: NodeJS.Signals) => {
      if (signalled) process.exit(1);
      signalled = true;
      resolve(signal);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

/** Collects close functions and calls them in reverse order. If one fails, the others still run. */
export class Closers {
  readonly #closers: Array<{ what: string; close: () => Promise<void> }> = [];

  add(what: string, close: () => Promise<void>): void {
    this.#closers.push({ what, close });
  }

  /** Calls all close functions, then throws the first error. */
  async close(log: Logger): Promise<void> {
    let first: unknown;
    for (const { what, close } of this.#closers.splice(0).reverse()) {
      try {
        await close();
      } catch (error) {
        log.error({ err: error }, `closing ${what}`);
        first ??= error;
      }
    }
    if (first !== undefined) throw first;
  }
}

/**
 * Starts a service, waits for a signal, and closes everything within `deadlineMs`. Returns the exit code, which is 1 if a component did not
 * close. If the start fails, closes the components that were started and rethrows the error. A signal during startup closes these
 * components immediately.
 */
export async function runService(
  options: { name: string; env: Io["env"]; deadlineMs?: number; logFormat?: LogFormat },
  start: (service: { log: Logger; closers: Closers }) => Promise<void>,
): Promise<number> {
  const { name, env, deadlineMs = 4500, logFormat } = options;
  const log = openLog(name, env, logFormat);
  for (const { name: variable, nearest } of findUnknownVariables(env)) {
    log.warn({ variable, nearest }, "unknown environment variable; it has no effect");
  }
  const closers = new Closers();
  const signalled = untilSignalled();
  const starting = start({ log, closers });
  try {
    await Promise.race([starting, signalled]);
  } catch (error) {
    await closers.close(log).catch(() => undefined);
    throw error;
  }
  const signal = await signalled;
  // If the start fails during a shutdown, ignores the error, because the shutdown caused it.
  starting.catch(() => undefined);
  log.info({ signal }, "stopping");
  const late = setTimeout(() => {
    log.error({ deadlineMs }, "did not stop in time");
    process.exit(1);
  }, deadlineMs);
  try {
    await closers.close(log);
    log.info("stopped");
    return 0;
  } catch {
    return 1;
  } finally {
    clearTimeout(late);
  }
}
