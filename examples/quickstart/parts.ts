import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

/* Starts the processes of the quickstart (the sample app and `postern dev`), and provides a small API client. */

const ROOT = join(import.meta.dirname, "..", "..");
const OTHER_PORTS = "If a port is taken: make dev ARGS='--api-port 9080 --sidecar-port 9000 --app-port 4000'";

/** Output of `postern dev --json` when all services are ready. */
export interface Ready {
  readonly apiUrl: string;
  readonly sidecarUrl: string;
  readonly adminUrl: string;
  readonly rootKey: string;
  readonly dashboardUrl: string;
}

/** Ports to listen on; 0 selects a free port. */
export interface Ports {
  readonly api: number;
  readonly sidecar: number;
  readonly app: number;
}

export interface Parts {
  readonly ready: Ready;
  /** Resolves when one of the processes has exited, or when this process receives a signal to stop. */
  readonly untilEnded: Promise<void>;
  stop(): Promise<void>;
}

/** Starts the sample app, and `postern dev` in front of it. If one of the two does not start, throws an error with its last log lines. */
export async function startParts(options: { manifests: string; data: string; ports: Ports }): Promise<Parts> {
  const children: ChildProcess[] = [];
  const stop = async () => {
    await Promise.all(
      children
        .splice(0)
        .reverse()
        .map((child) => stopProcess(child)),
    );
  };
  try {
    const app = spawn(process.execPath, [join(import.meta.dirname, "app.ts"), String(options.ports.app)], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(app);
    const upstream = await firstLine(app, "the sample app");
    const args = ["cli/main.ts", "dev", "--json", "--manifests", options.manifests, "--upstream", upstream];
    const ports = ["--api-port", String(options.ports.api), "--sidecar-port", String(options.ports.sidecar)];
    const dev = spawn(process.execPath, [...args, "--data-dir", options.data, ...ports], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "pipe"],
      env: { POSTERN_LOG_LEVEL: "warn", ...process.env },
    });
    children.push(dev);
    dev.stderr?.pipe(process.stderr);
    const ready = JSON.parse(await firstLine(dev, "postern dev")) as Ready;
    const asked = Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
    const ended = Promise.race([once(app, "exit"), once(dev, "exit"), asked]).then(() => undefined);
    return { ready, untilEnded: ended, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function firstLine(child: ChildProcess, what: string): Promise<string> {
  if (child.stdout === null) throw new Error(`${what} has no output`);
  const lines = createInterface({ input: child.stdout });
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`${what} ended with ${code} before it was ready; its messages are above. ${OTHER_PORTS}`);
  });
  const [line] = (await Promise.race([once(lines, "line"), ended])) as [string];
  ended.catch(() => undefined);
  return line;
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 6000);
  await exited;
  clearTimeout(late);
}

export class Api {
  readonly #ready: Ready;

  constructor(ready: Ready) {
    this.#ready = ready;
  }

  /** Calls a v2 procedure and returns its `data`. Throws an error with the `detail` of an error response. */
  async call<Data>(procedure: string, body: unknown): Promise<Data> {
    const response = await fetch(`${this.#ready.apiUrl}/v2/${procedure}`, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#ready.rootKey}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const reply = (await response.json()) as { data: Data; error?: unknown };
    if (!response.ok) throw new Error(`${procedure} answered ${response.status}: ${JSON.stringify(reply.error)}`);
    return reply.data;
  }

  createKey(body: Record<string, unknown>): Promise<{ keyId: string; key: string }> {
    return this.call("keys.createKey", body);
  }

  /** Returns the id of the API that the policy with this name uses. */
  async apiOf(policy: string): Promise<string> {
    const policies = await this.call<Array<{ name: string; policyId: string }>>("policies.listPolicies", {});
    const found = policies.find(({ name }) => name.endsWith(`/${policy}`));
    if (found === undefined) throw new Error(`there is no policy ${policy}`);
    const { policyId } = found;
    return (await this.call<{ policy: { apiId: string } }>("policies.getPolicy", { policyId })).policy.apiId;
  }
}
