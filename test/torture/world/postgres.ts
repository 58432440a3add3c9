import { readFileSync } from "node:fs";
import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../../cli/embedded-postgres.ts";
import { freePort } from "../../harness/ports.ts";

/** Acknowledged data is with the operating system, which survives every fault here, so no disk write is awaited. */
const SETTINGS = ["fsync=off", "full_page_writes=off", "synchronous_commit=on", "max_connections=200", "jit=off"];

/** A Postgres at a fixed address that is shut down immediately, without a checkpoint, and recovers. */
export class AbortablePostgres {
  readonly #options: Parameters<typeof startEmbeddedPostgres>[0];
  #server: EmbeddedPostgres;

  private constructor(options: Parameters<typeof startEmbeddedPostgres>[0], server: EmbeddedPostgres) {
    this.#options = options;
    this.#server = server;
  }

  static async start(folder: string): Promise<AbortablePostgres> {
    const dataDir = join(folder, "postgres");
    await mkdir(dataDir);
    // As root, the server runs as another user, who must be able to reach the folder.
    for (const path of [folder, dataDir]) await chmod(path, 0o755);
    const options = { dataDir, settings: SETTINGS, plainPasswords: true, port: await freePort() };
    return new AbortablePostgres(options, await startEmbeddedPostgres(options));
  }

  get url(): string {
    return this.#server.url;
  }

  /** The immediate shutdown: sessions are cut, nothing is flushed. Resolves when the process is gone. */
  async abort(): Promise<void> {
    const file = join(this.#options.dataDir, "cluster", "postmaster.pid");
    const pid = Number(readFileSync(file, "utf8").split("\n", 1)[0]);
    process.kill(pid, "SIGQUIT");
    while (isAlive(pid)) await sleep(10);
  }

  /** Resolves when it has recovered. */
  async restart(): Promise<void> {
    this.#server = await startEmbeddedPostgres(this.#options);
  }

  async end(): Promise<void> {
    await this.#server.stop();
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
