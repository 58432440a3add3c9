import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { type OwnRedis, startOwnRedis } from "../../harness/redis.ts";

/** Appended to the file before each reply, without waiting for the disk: a killed process loses nothing. */
const WITH_AOF = ["--appendonly", "yes", "--appendfsync", "no"];
const WITHOUT_AOF = ["--appendonly", "no"];

/** A Redis at a fixed address that keeps its data, loses it, or goes back to an earlier state. */
export class LosableRedis {
  readonly #server: OwnRedis;
  /** The administrator's connection. */
  readonly raw: Redis;

  private constructor(server: OwnRedis) {
    this.#server = server;
    this.raw = new Redis(server.url, { retryStrategy: () => 50 }).on("error", () => undefined);
  }

  static async start(): Promise<LosableRedis> {
    return new LosableRedis(await startOwnRedis({ args: WITH_AOF }));
  }

  get url(): string {
    return this.#server.url;
  }

  /** kill -9, and after `downMs` a start on the same files. */
  async restartWithAof(downMs: number): Promise<void> {
    await this.#server.kill("SIGKILL");
    await sleep(downMs);
    await this.#server.restart({ args: WITH_AOF });
  }

  /** kill -9, and a start without any files. */
  async restartEmpty(downMs: number): Promise<void> {
    await this.#server.kill("SIGKILL");
    await this.#forgetAof();
    await rm(join(this.#server.dir, "dump.rdb"), { force: true });
    await sleep(downMs);
    await this.#server.restart({ args: WITH_AOF });
  }

  /** Takes a snapshot, and after `ageMs` kills the server and starts it from that snapshot. Calls `onKill` in between. */
  async restartFromSnapshot(ageMs: number, onKill: () => void): Promise<void> {
    await this.raw.save();
    await sleep(ageMs);
    onKill();
    await this.#server.kill("SIGKILL");
    await this.#forgetAof();
    await this.#server.restart({ args: WITHOUT_AOF });
    await this.raw.config("SET", "appendonly", "yes");
  }

  pause(): void {
    process.kill(this.#server.pid, "SIGSTOP");
  }

  resume(): void {
    process.kill(this.#server.pid, "SIGCONT");
  }

  async end(): Promise<void> {
    this.raw.disconnect();
    await this.#server.stop();
  }

  async #forgetAof(): Promise<void> {
    await rm(join(this.#server.dir, "appendonlydir"), { recursive: true, force: true });
  }
}
