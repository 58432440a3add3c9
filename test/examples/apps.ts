import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { findBinary, MissingPart } from "../harness/parts/find.ts";
import { findGoProgram } from "../harness/parts/go-program.ts";
import { pythonWith } from "../harness/parts/python-package.ts";
import { type RunningProcess, startProcess } from "../harness/process.ts";

/* The example apps, and how each is started: by the list in docs/guides/api/verifying.md. */

const ROOT = resolve(import.meta.dirname, "../..");
const FASTAPI = { name: "fastapi", version: "0.165.0", and: ["uvicorn==0.54.0"], title: "FastAPI" };

export interface ExampleApp {
  readonly name: string;
  /** The command in the list, such as `python3 examples/apps/python/app.py`. */
  readonly start: string;
}

export const APPS: readonly ExampleApp[] = [
  ...readFileSync(join(ROOT, "docs/guides/api/verifying.md"), "utf8").matchAll(/^- \[(.*)\]\(.*\):\s+`(.*)`$/gm),
].map(([, name = "", start = ""]) => ({ name: name.replaceAll("`", ""), start }));

/** The words of a command, with the program that the harness finds or makes in place of its name. */
async function programOf(words: readonly string[]): Promise<string[]> {
  const [program, ...args] = words;
  if (program === "node") return [process.execPath, ...args];
  if (program === "python3") return [await findPython(args), ...args];
  const [run, source = "", ...more] = args;
  if (program !== "go" || run !== "run") throw new Error(`the harness knows no "${words.join(" ")}"`);
  return [await findGoProgram({ name: "example-app", source: join("..", source), modules: [] }), ...more];
}

async function findPython([file = ""]: readonly string[]): Promise<string> {
  if (file.includes("fastapi")) return await pythonWith(FASTAPI);
  const found = await findBinary(["python3"]);
  if (found === undefined) throw new MissingPart("Python is missing: install python3 (3.11 or newer)");
  return found;
}

/** Starts an app that asks `apiUrl`, and returns its process and its address. */
export async function startApp(
  { start }: ExampleApp,
  { apiUrl, rootKey }: { apiUrl: string; rootKey: string },
): Promise<{ url: string; process: RunningProcess }> {
  const words = start.split(" ");
  const variables = words.filter((word) => /^[A-Z]+=/.test(word)).map((word) => word.split("="));
  const [file = "", ...args] = await programOf(words.slice(variables.length));
  const readyLine = /^listening on (http:\S+)$/m;
  const started = await startProcess(file, args, {
    cwd: ROOT,
    env: {
      ...Object.fromEntries(variables),
      POSTERN_API_URL: apiUrl,
      POSTERN_ROOT_KEY: rootKey,
      PORT: "0",
      PYTHONDONTWRITEBYTECODE: "1",
    },
    readyLine,
  });
  return { url: readyLine.exec(started.stdout())?.[1] ?? "", process: started };
}
