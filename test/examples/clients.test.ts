import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Server, startServer } from "../conformance/server.ts";
import { GENERATED_CLIENTS, readPage, runSteps, type Step } from "../docs/guides/page.ts";
import { npmWith } from "../harness/parts/npm-packages.ts";
import { pythonWith } from "../harness/parts/python-package.ts";
import { issuerOf } from "./keys.ts";

/*
 * examples/clients/README.md as written, on a real api-server: generators make clients of the document that it serves, and a call
 * by each is type-checked and sent. Only what installs packages is done by the harness, once; the versions are those of the page.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
const page = readPage(GENERATED_CLIENTS);
const INSTALL_MS = 300_000;
const INSTALLS = /^(?:npm install|pip install|python3 -m venv|\. \.venv)\b.*$/gm;

/** The packages that the page installs with a program: `name@version` or `name==version`. */
const packagesOf = (program: string): string[] =>
  [...page.text.matchAll(new RegExp(`^${program} install (.*)$`, "gm"))].flatMap(([, words = ""]) =>
    words.split(" ").filter((word) => !word.startsWith("--")),
  );
/** The blocks of code, by the file that their first line names. */
const files = [...page.text.matchAll(/^```(?:ts|python)\n(?:\/\/|#) (\S+)\n.*?^```$/gms)].map(([block, name = ""]) => ({
  name,
  text: block.split("\n").slice(1, -1).join("\n"),
}));
const steps: readonly Step[] = page.steps.map((step) => ({
  ...step,
  commands: step.commands.replaceAll(INSTALLS, ""),
}));

let server: Server;
let folder: string;
let python: string;
let variables: Record<string, string>;
beforeAll(async () => {
  server = await startServer();
  folder = mkdtempSync(join(tmpdir(), "postern-clients-"));
  const npm = await npmWith("openapi-typescript", packagesOf("npm"));
  symlinkSync(join(npm, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  const [name = "", version = ""] = packagesOf("pip")[0]?.split("==") ?? [];
  python = await pythonWith({ name, version, and: ["mypy==2.4.1"], title: name });
  for (const file of files) writeFileSync(join(folder, file.name), file.text);

  const { rootKey, resources } = await server.workspace();
  const issue = await issuerOf(server.url, rootKey);
  const { key } = await issue({ externalId: "user_10" });
  variables = {
    PATH: [dirname(python), dirname(process.execPath), process.env.PATH].join(delimiter),
    POSTERN_API_URL: server.url,
    POSTERN_ROOT_KEY: await server.rootKey(resources.workspaceId, page.permissions),
    KEY: key,
  };
}, INSTALL_MS);
afterAll(async () => {
  await server?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
});

test("generated clients compile and verify a key", async () => {
  expect(files.map(({ name }) => name)).toEqual(["verify.ts", "verify.py"]);
  const ran = await runSteps(steps, { variables, printed: "", folder });
  for (const { shown, printed, commands } of ran) expect(printed, commands).toBe(shown);
  expect(ran).toHaveLength(2);
  await run(python, ["-m", "compileall", "-q", "postern_client"], { cwd: folder });
});

test("generated client types accept the documented calls and reject wrong types", async () => {
  const wrong = (name: string, from: string, to: string) => {
    const text = files.find((file) => file.name === name)?.text ?? "";
    expect(text).toContain(from);
    writeFileSync(join(folder, `wrong_${name}`), text.replace(from, to));
  };
  wrong("verify.ts", 'permissions: "reports.read"', "permissions: 5");
  wrong("verify.py", 'permissions="reports.read"', "permissions=5");
  const complaints = async (file: string, args: string[]): Promise<string[]> => {
    const { stdout } = await run(file, args, { cwd: folder }).catch((error: { stdout: string }) => error);
    return stdout.split("\n").filter((line) => line !== "");
  };
  // The page has run TypeScript's own tsc on the right call.
  const options = ["--noEmit", "--strict", "--target", "es2024", "--module", "nodenext", "--types", "node"];
  const ofTsc = await complaints(join(ROOT, "node_modules/.bin/tsc"), [
    "--ignoreConfig",
    ...options,
    "wrong_verify.ts",
  ]);
  expect(ofTsc[0]).toMatch(/^wrong_verify\.ts.* Type 'number' is not assignable to type 'string/);
  const ofMypy = await complaints(python, ["-m", "mypy", "--no-error-summary", "verify.py", "wrong_verify.py"]);
  // Four lines of the generator's own template do not please mypy. They are the same for every document.
  expect(ofMypy.filter((line) => !line.startsWith("postern_client/client.py:"))).toEqual([
    expect.stringMatching(/^wrong_verify\.py:.* incompatible type "int"/),
  ]);
});
