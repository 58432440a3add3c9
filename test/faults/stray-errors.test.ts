import type { Socket } from "node:net";
import { resolve } from "node:path";
import { afterEach, expect, test } from "vitest";
import { aRule, call, sendRaw, startApp, type TestApp } from "../harness/gate.ts";
import { type GuardedApp, guardApp } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";

/* Events that end a Node process by default must not end a gate: a response of an app, or an uncaught error. */

let app: TestApp;
let guarded: GuardedApp;
afterEach(async () => {
  await guarded?.close();
  await app?.close();
});

const policy = { rules: [aRule({ access: "Anonymous" })] };
const throwOnSignal = ["--import", resolve(import.meta.dirname, "throw-on-signal.ts")];

test("failed upgrade responses do not crash the process", async () => {
  app = await startApp();
  let response = "";
  app.server.on("upgrade", (_req, socket: Socket) => socket.on("error", () => {}).end(Buffer.from(response, "latin1")));
  guarded = await guardApp({ upstream: app.url, policy });
  const handshake = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
  for (const status of ["400 n\x01o", "000 no", "099 no", "101 n\x01o"]) {
    response = `HTTP/1.1 ${status}\r\n\r\n`;
    const { text } = await sendRaw(guarded.port, handshake);
    expect(text).toMatch(status.startsWith("400") ? /^HTTP\/1\.1 400 Bad Request\r\n/ : /^HTTP\/1\.1 (502|101) /);
  }
  expect((await call(guarded.port)).status).toBe(200);
  expect(await guarded.metrics()).toContain('postern_sidecar_internal_errors_total{source="stray"} 0');
});

test("uncaught errors are counted, and the process exits after 100 per minute", async () => {
  app = await startApp();
  guarded = await guardApp({ upstream: app.url, policy, nodeArgs: throwOnSignal });
  const child = guarded.process;
  const signalUntil = async (faults: number): Promise<void> => {
    // Simultaneous signals count as one, so each is awaited.
    for (let next = await readFaults(); next < faults; next = await readFaults()) {
      child.kill("SIGUSR2");
      await waitFor("the fault to be counted", async () => (await readFaults()) > next);
    }
  };
  const readFaults = async (): Promise<number> =>
    Number(/internal_errors_total\{source="stray"\} (\d+)/.exec(await guarded.metrics())?.[1] ?? Number.NaN);

  await signalUntil(5);
  expect((await call(guarded.port)).status).toBe(200);
  expect(child.stderr()).toContain("stray error 1");

  await signalUntil(100);
  expect((await call(guarded.port)).status).toBe(200);
  child.kill("SIGUSR2");
  expect((await child.exited).code).toBe(1);
  expect(child.stderr()).toContain("too many uncaught errors; exiting");
});
