import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";

/** Runs a program with `input` as JSON on stdin and returns its output. Throws its error output if it fails. */
export async function runWithJson(program: string, args: readonly string[], input: unknown): Promise<string> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "pipe"] });
  const closed = once(child, "close");
  // The program may exit without reading all input; its exit code reports the result.
  child.stdin.on("error", () => undefined);
  child.stdin.end(JSON.stringify(input));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${stderr}`);
  return stdout;
}
