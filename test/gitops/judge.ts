import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { findGoProgram } from "../harness/parts/go-program.ts";
import { runWithJson } from "../harness/run-with-json.ts";

const SCRIPT = resolve(import.meta.dirname, "../../examples/gitops/argocd-health.lua");

export interface Verdict {
  /** What Flux makes of it. */
  readonly kstatus: "Current" | "InProgress" | "Failed" | "Terminating";
  /** What our health.lua makes of it in Argo CD. */
  readonly argocd: { readonly status: string; readonly message: string };
}

/** Finds or builds the program: a minute on a new machine. */
export const findChecker = (): Promise<string> =>
  findGoProgram({
    name: "gitops-judge",
    source: "gitops/judge.go",
    // The library by which Flux waits, the types of its objects, and the interpreter in which Argo CD runs scripts of health.
    modules: [
      "github.com/fluxcd/cli-utils@v1.3.0",
      "github.com/fluxcd/helm-controller/api@v1.3.0",
      "github.com/fluxcd/kustomize-controller/api@v1.6.1",
      "github.com/fluxcd/source-controller/api@v1.6.2",
      "github.com/yuin/gopher-lua@v1.1.1",
    ],
  });

/** Returns what Flux and Argo CD make of each object, by the code that they use. Throws what that code says when it fails. */
export async function judge(objects: readonly object[]): Promise<Verdict[]> {
  const script = await readFile(SCRIPT, "utf8");
  return JSON.parse(await runWithJson(await findChecker(), [], { script, objects })) as Verdict[];
}

/** Throws when one of these objects of Flux has a field that Flux does not know, or a value of another type. */
export async function checkFlux(objects: readonly object[]): Promise<void> {
  await runWithJson(await findChecker(), ["flux"], objects);
}
