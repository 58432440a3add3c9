import { createHash } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { findPart, isExecutable } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";

const SOURCE = resolve(import.meta.dirname, "../../gitops/judge.go");
/** The library by which Flux waits, the types of its objects, and the interpreter in which Argo CD runs scripts of health. */
const MODULES = [
  "github.com/fluxcd/cli-utils@v1.3.0",
  "github.com/fluxcd/helm-controller/api@v1.3.0",
  "github.com/fluxcd/kustomize-controller/api@v1.6.1",
  "github.com/fluxcd/source-controller/api@v1.6.2",
  "github.com/yuin/gopher-lua@v1.1.1",
];

/** Returns the path of `test/gitops/judge.go` as a program, which is built into the user's cache once for each version of it. */
export async function findGitopsJudge(): Promise<string> {
  const source = await readFile(SOURCE, "utf8");
  const version = createHash("sha256")
    .update(JSON.stringify([source, MODULES]))
    .digest("hex")
    .slice(0, 12);
  const folder = join(cacheFolder(), `gitops-judge-${version}`);
  const built = async () => ((await isExecutable(join(folder, "judge"))) ? folder : undefined);
  const build = async ({ work, go }: Go) => {
    await writeFile(join(work, "go.mod"), "module postern.test/judge\n\ngo 1.24.0\n");
    await writeFile(join(work, "main.go"), source);
    await go(["get", ...MODULES]);
    await go(["build", "-o", join("bin", "judge"), "-ldflags", "-s -w", "."]);
  };
  const found = await findPart("The judge of GitOps", "install Go 1.24 or newer, or python3 with venv", [
    { name: "the cache", attempt: built },
    { name: "Go build", attempt: () => buildOnce({ what: "kstatus and Argo CD's Lua", folder, built, build }) },
  ]);
  return join(found, "judge");
}
