import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Api, type Ports, type Ready, startParts } from "./parts.ts";

/*
 * `make demo` demonstrates Postern with real requests to the services that `postern dev` starts. Each step prints its action and result;
 * the exit code is 0 only if every step returned the expected result. `make dev` (`--stay`) starts the same services, prints commands to
 * try, and runs until Ctrl-C. For other ports: `make dev ARGS='--api-port 9080 --sidecar-port 9000 --app-port 4000'`, where 0 selects a
 * free port. `--data-dir DIR` sets the directory of the data files.
 */

const HERE = import.meta.dirname;
/** Maximum time to wait until an edit or a disabled key takes effect. Usually it takes milliseconds. */
const ENFORCED_WITHIN_MS = 5000;
const WINDOW_MS = 3_600_000;

async function walk(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "postern-demo-"));
  const manifests = join(folder, "manifests");
  cpSync(HERE, manifests, { recursive: true, filter: (path) => !path.endsWith(".ts") });
  say("\nPostern quickstart: manifests in, a guarded app out\n");
  say("  starting Postgres, api-server, operator, sidecar and a sample app …");
  const startedAt = performance.now();
  const parts = await startParts({ manifests, data: join(folder, "data"), ports: { api: 0, sidecar: 0, app: 0 } });
  try {
    say(`  all of it is ready after ${seconds(performance.now() - startedAt)}\n`);
    return await steps(parts.ready, manifests);
  } finally {
    await parts.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function steps(ready: Ready, manifests: string): Promise<number> {
  const api = new Api(ready);
  const apiId = await api.apiOf("orders");
  const writer = await api.createKey({ apiId, name: "writer", externalId: "acme", roles: ["orders.editor"] });
  const reader = await api.createKey({ apiId, name: "reader" });
  const table = new Table();

  const none = await send(ready, undefined);
  table.add("no key", none, none.status === 401);

  // Repeats the request until the gate has received the new key. The gate receives keys asynchronously.
  const lacking = await untilStatus(ready, reader.key, 403, async () => undefined);
  const known = `made just now, known at the sidecar after ${ms(lacking.tookMs)}`;
  table.add("a key without the permission orders.write", lacking.reply, lacking.inTime, known);

  await untilWindowHasRoom();
  const good = await send(ready, writer.key);
  const seen = good.identity["x-postern-key-id"] === writer.keyId && good.identity["x-postern-external-id"] === "acme";
  table.add("a key with the role orders.editor", good, good.status === 200 && seen);
  for (const [name, value] of Object.entries(good.identity).sort()) say(`       the app saw  ${name}: ${value}`);

  const rest = await Promise.all(Array.from({ length: 9 }, () => send(ready, writer.key)));
  const allPassed = rest.every((reply) => reply.status === 200);
  table.add("nine more, which use up the limit of ten an hour", rest.at(-1) ?? good, allPassed);
  const over = await send(ready, writer.key);
  table.add(
    "one more than ten",
    over,
    over.status === 429 && over.retryAfter !== null,
    `Retry-After: ${over.retryAfter} s`,
  );

  const edited = await untilStatus(ready, writer.key, 200, async () => raiseLimit(manifests));
  table.add(
    "the manifest is edited: ten becomes a thousand",
    edited.reply,
    edited.inTime,
    `enforced after ${ms(edited.tookMs)}`,
  );

  const disabled = await untilStatus(ready, writer.key, 401, () =>
    api.call("keys.updateKey", { keyId: writer.keyId, enabled: false }),
  );
  table.add(
    "the key is disabled through /v2/keys.updateKey",
    disabled.reply,
    disabled.inTime,
    `enforced after ${ms(disabled.tookMs)}`,
  );

  return table.close();
}

interface Reply {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly identity: Record<string, string>;
}

async function send(ready: Ready, key: string | undefined): Promise<Reply> {
  const headers: Record<string, string> = { "content-type": "application/json" };
  if (key !== undefined) headers.authorization = `Bearer ${key}`;
  const response = await fetch(`${ready.sidecarUrl}/orders`, { method: "POST", headers, body: "{}" });
  const body = (await response.json()) as { identity?: Record<string, string> };
  return { status: response.status, retryAfter: response.headers.get("retry-after"), identity: body.identity ?? {} };
}

/** Makes the change, then repeats the request until the gate returns the expected status. Measures the time from the change until then. */
async function untilStatus(ready: Ready, key: string, wanted: number, change: () => Promise<unknown>) {
  await change();
  const madeAt = performance.now();
  for (;;) {
    const reply = await send(ready, key);
    const tookMs = performance.now() - madeAt;
    if (reply.status === wanted) return { reply, tookMs, inTime: true };
    if (tookMs > ENFORCED_WITHIN_MS) return { reply, tookMs, inTime: false };
    await new Promise((done) => setTimeout(done, 2));
  }
}

async function raiseLimit(manifests: string): Promise<void> {
  const file = join(manifests, "policy.yaml");
  const before = readFileSync(file, "utf8");
  const after = before.replace("limit: 10,", "limit: 1000,");
  if (after === before) throw new Error(`${file} has no "limit: 10," to edit`);
  writeFileSync(file, after);
}

/**
 * Waits for the next window if the current one is about to end. Windows are aligned to the clock, so otherwise the counter could restart in
 * the middle of the step.
 */
async function untilWindowHasRoom(): Promise<void> {
  const remainingMs = WINDOW_MS - (Date.now() % WINDOW_MS);
  if (remainingMs > 20_000) return;
  say(`  (waiting ${seconds(remainingMs)} for the next hour, so that the count of ten stays within one window)`);
  await new Promise((done) => setTimeout(done, remainingMs + 50));
}

class Table {
  #step = 0;
  #failed = 0;

  add(what: string, reply: Reply, ok: boolean, note = ""): void {
    this.#step += 1;
    if (!ok) this.#failed += 1;
    say(`  ${this.#step}  ${what.padEnd(50)} ${reply.status}  ${ok ? "ok  " : "WRONG"}  ${note}`.trimEnd());
  }

  close(): number {
    say(
      this.#failed === 0
        ? `\n  all ${this.#step} steps gave what they should\n`
        : `\n  ${this.#failed} of ${this.#step} steps went wrong\n`,
    );
    return this.#failed === 0 ? 0 : 1;
  }
}

async function stay(options: { data: string; ports: Ports }): Promise<number> {
  const parts = await startParts({ manifests: HERE, ...options });
  try {
    const { ready } = parts;
    const api = new Api(ready);
    const { key } = await api.createKey({
      apiId: await api.apiOf("orders"),
      roles: ["orders.editor"],
      externalId: "acme",
    });
    say(`
Postern is running; Ctrl-C stops it. Edit ${HERE}/*.yaml and see it enforced.

  sidecar    ${ready.sidecarUrl}   (probes and metrics: ${ready.adminUrl})
  API        ${ready.apiUrl}/v2/…   (document: ${ready.apiUrl}/openapi.json)
  dashboard  ${ready.dashboardUrl}
             (signs in once, within five minutes; for another: npm run postern -- dashboard link)
  root key   ${ready.rootKey}
  a key      ${key}

Try:
  curl -i -X POST ${ready.sidecarUrl}/orders
  curl -i -X POST ${ready.sidecarUrl}/orders -H 'Authorization: Bearer ${key}'
  curl -s ${ready.apiUrl}/v2/keys.verifyKey -H 'Authorization: Bearer ${ready.rootKey}' -H 'Content-Type: application/json' -d '{"key":"${key}"}'
`);
    await parts.untilEnded;
    return 0;
  } finally {
    await parts.stop();
  }
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(1)} s`;
}

function ms(durationMs: number): string {
  return `${durationMs.toFixed(0)} ms`;
}

try {
  const { values } = parseArgs({
    options: {
      stay: { type: "boolean", default: false },
      "data-dir": { type: "string", default: ".postern" },
      "api-port": { type: "string", default: "8080" },
      "sidecar-port": { type: "string", default: "8000" },
      "app-port": { type: "string", default: "3000" },
    },
  });
  const [api, sidecar, app] = [values["api-port"], values["sidecar-port"], values["app-port"]].map(Number);
  const ports = { api: api ?? 0, sidecar: sidecar ?? 0, app: app ?? 0 };
  process.exit(values.stay ? await stay({ data: resolve(values["data-dir"]), ports }) : await walk());
} catch (error) {
  process.stderr.write(`\n${error instanceof Error ? error.message : error}\n`);
  if (process.argv.includes("--stay")) {
    process.stderr.write(
      "If a port is taken, this takes free ones: make dev ARGS='--api-port 0 --sidecar-port 0 --app-port 0'\n",
    );
  }
  process.exit(1);
}
