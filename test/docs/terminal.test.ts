import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { COMMANDS } from "../../cli/commands.ts";
import { makeClient } from "../faults/client.ts";
import { openSystem } from "../faults/system.ts";
import { PROGRAM } from "../harness/process.ts";

/* Runs the commands of docs/guides/terminal.md as written, one after another, by bash, against an api-server of its own. */

const ROOT = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);
const page = readFileSync(join(ROOT, "docs/guides/terminal.md"), "utf8");
const lines = [...page.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, text = ""]) => text.trim().split("\n"));

const dir = mkdtempSync(join(tmpdir(), "postern-terminal-"));
afterAll(() => rmSync(dir, { recursive: true }));

/** A program of this folder, found before all others. */
function aProgram(name: string, script: string): void {
  const file = join(dir, "bin", name);
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
}

test("every command of docs/guides/terminal.md works", async () => {
  mkdirSync(join(dir, "bin"));
  aProgram("postern", `exec '${process.execPath}' '${PROGRAM}' "$@"`);
  // What kubectl would put into the Secret.
  aProgram("kubectl", `echo "$@" > '${dir}/kubectl-arguments'; cat > '${dir}/secret'`);
  const system = await openSystem();
  const server = await system.api();
  const env: Record<string, string | undefined> = {
    PATH: [join(dir, "bin"), process.env.PATH].join(delimiter),
    HOME: dir,
    USER: "ada",
    DATABASE_URL: system.databaseUrl,
    API_URL: server.url,
  };
  const shell = async (line: string): Promise<string> =>
    (await run("bash", ["--norc", "-c", `set -euo pipefail; ${line}`], { cwd: dir, env })).stdout;
  const fileOf = (name: string): string => readFileSync(join(dir, name), "utf8");

  await shell("postern workspace create --name shop");
  // Of those who keep the APIs and the limits; the person at the terminal has no right to do this.
  const grants = "api.*.create_api,ratelimit.*.create_namespace";
  const { rootKey } = JSON.parse(
    await shell(`postern rootkey create --workspace shop --permissions '${grants}' --json`),
  );
  const owner = makeClient(server.url, rootKey);
  env.API_ID = (await owner.data("apis.createApi", { name: "orders" })).apiId;
  await owner.data("ratelimit.createNamespace", { name: "logins" });

  expect(lines.length).toBeGreaterThan(15);
  for (const line of lines) {
    const printed = await shell(line);
    if (line.startsWith("postern key list --api") && !line.includes("--all")) {
      env.KEY_ID = /^(key_\w+) /m.exec(printed)?.[1];
      expect(printed).toMatch(/web shop +enabled +ada/);
    }
    if (/^postern (profile list|key (get|verify)|identity|role|override)/.test(line))
      expect(printed, line).not.toBe("");
  }
  expect(fileOf("key.txt")).toMatch(/^\S+$/);
  expect(fileOf("secret")).toMatch(/^[1-9A-Za-z]+$/);
  expect(fileOf("kubectl-arguments")).toBe("create secret generic reports-key --from-file=key=/dev/stdin\n");
  // The key was deleted, its successor goes on.
  expect(
    JSON.parse(fileOf("keys.json"))
      .keys.map((key: { name: string }) => key.name)
      .sort(),
  ).toEqual(["reports", "web shop"]);
  await expect(shell("postern key verify --key-file key.txt")).rejects.toMatchObject({ code: 10 });
  expect(await shell("postern key verify --key-file next-key.txt")).toContain("VALID");
}, 180_000);

test("first API guide lists exactly the verbs of the command line", () => {
  const guide = readFileSync(join(ROOT, "docs/guides/api/README.md"), "utf8");
  const verbs = /key --help` lists all verbs, such as (.*)\.$/m.exec(guide)?.[1]?.split(", ") ?? [];
  expect(verbs.length).toBeGreaterThan(3);
  const names = COMMANDS.map(({ name }) => name);
  expect(verbs.filter((verb) => !names.includes(`key ${verb}`))).toEqual([]);
});

test("terminal guide lists every API and database command", () => {
  const [, api = "", database = ""] = /^\| (`key`.*?) \| the API.*?\n\| (.*?) \| Postgres/ms.exec(page) ?? [];
  const words = (text: string) => [...text.matchAll(/`([^`]+)`/g)].map(([, word = ""]) => word).sort();
  const of = (group: string) => COMMANDS.filter((row) => row.group === group).map(({ name }) => name);
  const nounOf = (name: string) => name.split(" ")[0] ?? name;
  const [ofApi, ofDatabase] = ["api", "database"].map((group, index) => {
    const others = of(["database", "api"][index] ?? "");
    // The row with most commands of a noun names the noun, and the other row names its commands of that noun.
    const isNoun = (name: string) =>
      of(group).filter((one) => nounOf(one) === nounOf(name)).length >
      others.filter((one) => nounOf(one) === nounOf(name)).length;
    return new Set(of(group).map((name) => (isNoun(name) ? nounOf(name) : name)));
  }) as [Set<string>, Set<string>];
  // It is run by the chart alone.
  ofDatabase.delete("provision");
  expect(words(api)).toEqual([...ofApi].sort());
  expect(words(database)).toEqual([...ofDatabase].sort());
});

test("terminal guide covers each verb of keys, identities, roles and overrides", () => {
  const shown = COMMANDS.filter(({ name, group }) => group === "api" && name.startsWith("key ")).map(
    ({ name }) => name,
  );
  expect(shown.filter((name) => !lines.some((line) => line.startsWith(`postern ${name}`)))).toEqual([]);
});
