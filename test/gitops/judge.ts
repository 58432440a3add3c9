import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { findGitopsJudge } from "../harness/parts/gitops-judge.ts";

const SCRIPT = resolve(import.meta.dirname, "../../examples/gitops/argocd-health.lua");

export interface Verdict {
  /** What Flux makes of it. */
  readonly kstatus: "Current" | "InProgress" | "Failed" | "Terminating";
  /** What our health.lua makes of it in Argo CD. */
  readonly argocd: { readonly status: string; readonly message: string };
}

/** Returns what Flux and Argo CD make of each object, by the code that they use. Throws what that code says when it fails. */
export async function judge(objects: readonly object[]): Promise<Verdict[]> {
  return JSON.parse(await run([], { script: await readFile(SCRIPT, "utf8"), objects })) as Verdict[];
}

/** Throws when one of these objects of Flux has a field that Flux does not know, or a value of another type. */
export async function checkFlux(objects: readonly object[]): Promise<void> {
  await run(["flux"], objects);
}

async function run(args: readonly string[], input: unknown): Promise<string> {
  const child = spawn(await findGitopsJudge(), args, { stdio: ["pipe", "pipe", "pipe"] });
  const closed = once(child, "close");
  child.stdin.end(JSON.stringify(input));
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  if (code !== 0) throw new Error(`the judge ended with ${code}: ${stderr}`);
  return stdout;
}
