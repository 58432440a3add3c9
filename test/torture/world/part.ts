import { appendFile } from "node:fs/promises";
import { resolve } from "node:path";
import { PROGRAM, type RunningProcess, startProcess } from "../../harness/process.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
/** Together with eight others that start at the same time, on two cores. */
const READY_MS = 60_000;

export interface PartOptions {
  readonly name: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly readyLine: RegExp;
  /** Its address, the same after each restart. */
  readonly url: string;
  /** For its metrics; the same as `url` when left out. */
  readonly adminUrl?: string;
  /** The log of all its lives. */
  readonly logFile: string;
}

/** A process of ours at a fixed address, which is killed and started again. */
export class Part {
  readonly name: string;
  readonly url: string;
  readonly adminUrl: string;
  readonly #options: PartOptions;
  #child: RunningProcess | undefined;
  #incarnation = 0;
  #ended = false;
  /** Lives that ended without a signal from us. */
  readonly crashes: string[] = [];

  constructor(options: PartOptions) {
    this.#options = options;
    this.name = options.name;
    this.url = options.url;
    this.adminUrl = options.adminUrl ?? options.url;
  }

  /** How often it was started. */
  get incarnation(): number {
    return this.#incarnation;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Resolves when it reports that it is ready. */
  async start(): Promise<void> {
    const { args, env, readyLine, logFile } = this.#options;
    this.#incarnation += 1;
    const options = { cwd: ROOT, env: { ...env }, readyLine, readyMs: READY_MS };
    const child = await startProcess(process.execPath, [PROGRAM, ...args], options);
    if (this.#ended) {
      await child.stop(0);
      return;
    }
    this.#child = child;
    void child.exited.then(async ({ code, signal }) => {
      // Only our own signals end it; any other end is a crash.
      if (this.#child === child) this.crashes.push(`${this.name} ended by itself (code ${code}, signal ${signal})`);
      await appendFile(logFile, child.stderr());
    });
  }

  /** kill -9. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    child?.kill("SIGKILL");
    await child?.exited;
  }

  pause(): void {
    this.#child?.kill("SIGSTOP");
  }

  resume(): void {
    this.#child?.kill("SIGCONT");
  }

  /** Ends it permanently. Waits `graceMs` for a graceful end. */
  async end(graceMs = 10_000): Promise<void> {
    this.#ended = true;
    const child = this.#child;
    this.#child = undefined;
    child?.kill("SIGCONT");
    await child?.stop(graceMs);
  }
}
