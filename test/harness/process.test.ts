import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "./ports.ts";
import { startProcess } from "./process.ts";
import { waitFor } from "./wait.ts";

const node = process.execPath;
const FOREVER = "setInterval(() => {}, 1000);";

test("test process is ready on its output and ends when stopped", async () => {
  const script = `console.log("ready " + process.env.WORD); ${FOREVER}`;
  const child = await startProcess(node, ["-e", script], { readyLine: /ready/, env: { WORD: "now" } });
  expect(child.stdout()).toBe("ready now\n");
  expect(await child.stop()).toEqual({ code: null, signal: "SIGTERM" });
  expect(await child.stop()).toEqual({ code: null, signal: "SIGTERM" });
});

test("test process that ignores SIGTERM is killed", async () => {
  const script = `process.on("SIGTERM", () => {}); console.log("ready"); ${FOREVER}`;
  const child = await startProcess(node, ["-e", script], { readyLine: /ready/ });
  expect(await child.stop(100)).toEqual({ code: null, signal: "SIGKILL" });
});

test("test process that ends before readiness fails with its output", async () => {
  const start = startProcess(node, ["-e", "console.error('no port'); process.exit(3)"], { readyLine: /ready/ });
  await expect(start).rejects.toThrow(/ended too early \(code 3, signal null\):\nno port/);
});

test("starting a test process fails if its program is missing", async () => {
  await expect(startProcess("/no/such/program", [])).rejects.toThrow("starting /no/such/program");
});

test.each(["throw new Error('crash')", "process.kill(process.pid, 'SIGTERM')"])(
  "test run that ends by %s leaves no child process",
  async (end) => {
    const dir = await mkdtemp(join(tmpdir(), "postern-process-"));
    try {
      const module = JSON.stringify(join(import.meta.dirname, "process.ts"));
      const child = `startProcess(process.execPath, ["-e", ${JSON.stringify(FOREVER)}])`;
      const script = `import { startProcess } from ${module}; const { pid } = await ${child}; console.log(pid); ${end};`;
      await writeFile(join(dir, "run.ts"), script);
      const run = await startProcess(node, [join(dir, "run.ts")]);
      await run.exited;
      const pid = Number(run.stdout());
      expect(pid).toBeGreaterThan(0);
      await waitFor("the child to be gone", () => !isAlive(pid));
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  },
);

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test("waitFor timeout names the awaited condition and the last error", async () => {
  const probe = () => {
    throw new Error("connection refused");
  };
  const wait = waitFor("the moon", probe, { deadlineMs: 20, everyMs: 5 });
  await expect(wait).rejects.toThrow("waited 20 ms in vain for the moon: connection refused");
});

test("waitFor returns the first result, even null or zero", async () => {
  const responses = [undefined, false, 0] as const;
  let asked = 0;
  expect(await waitFor("a number", () => responses[asked++], { everyMs: 1 })).toBe(0);
});

test("free test port can be listened on", async () => {
  const server = createServer();
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  await new Promise((resolve) => server.close(resolve));
});
