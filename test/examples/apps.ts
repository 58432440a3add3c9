import { join, resolve } from "node:path";
import { findBinary, MissingPart } from "../harness/parts/find.ts";
import { findGoProgram } from "../harness/parts/go-program.ts";
import { pythonWith } from "../harness/parts/python-package.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";

/* How each of examples/apps and examples/middleware is started. */

const EXAMPLES = resolve(import.meta.dirname, "../../examples");

export interface ExampleApp {
  readonly name: string;
  /** A command and its arguments. */
  readonly command: () => Promise<readonly string[]>;
}

const node =
  (...args: string[]) =>
  async () => [process.execPath, ...args];

async function python(...args: string[]): Promise<string[]> {
  const found = await findBinary(["python3"]);
  if (found === undefined) throw new MissingPart("Python is missing: install python3 (3.11 or newer)");
  return [found, ...args];
}

const FASTAPI = { name: "fastapi", version: "0.165.0", and: ["uvicorn==0.54.0"], title: "FastAPI" };

export const APPS: readonly ExampleApp[] = [
  { name: "TypeScript with fetch", command: node("apps/typescript/app.ts", "fetch") },
  { name: "TypeScript with @unkey/api", command: node("apps/typescript/app.ts", "client") },
  { name: "Python", command: () => python("apps/python/app.py") },
  {
    name: "Go",
    command: async () => [
      await findGoProgram({ name: "example-app", source: "../examples/apps/go/main.go", modules: [] }),
    ],
  },
  { name: "fastify", command: node("middleware/fastify.ts") },
  { name: "Express", command: node("middleware/express.ts") },
  { name: "Hono", command: node("middleware/hono.ts") },
  { name: "FastAPI", command: async () => [await pythonWith(FASTAPI), "middleware/fastapi_app.py"] },
];

/** Starts an app that asks `apiUrl`, and returns its process and its address. */
export async function startApp(
  { command }: ExampleApp,
  { apiUrl, rootKey }: { apiUrl: string; rootKey: string },
): Promise<{ url: string; process: RunningProcess }> {
  const [file = "", ...args] = await command();
  const readyLine = /^listening on (http:\S+)$/m;
  const started = await startProcess(file, args, {
    cwd: EXAMPLES,
    env: {
      POSTERN_API_URL: apiUrl,
      POSTERN_ROOT_KEY: rootKey,
      PORT: "0",
      PYTHONPATH: join(EXAMPLES, "apps/python"),
      PYTHONDONTWRITEBYTECODE: "1",
    },
    readyLine,
  });
  return { url: readyLine.exec(started.stdout())?.[1] ?? "", process: started };
}
