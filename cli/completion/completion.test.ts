import { execFile, spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { unpackedProgram, unpackedRoot } from "../../test/harness/parts/debian-packages.ts";
import { findBinary, findPart } from "../../test/harness/parts/find.ts";
import { PROGRAM } from "../../test/harness/process.ts";
import { waitFor } from "../../test/harness/wait.ts";
import type { Command } from "../command.ts";
import { COMMANDS } from "../commands.ts";
import { writeProfiles } from "../profiles.ts";
import { runPostern } from "../test/api-cli.ts";
import { nounsOf, valuesOf } from "./values.ts";

/* Runs each script in its real shell and reads the completions. */

const run = promisify(execFile);

let dir: string;
let env: Record<string, string>;
let commands: Command[];
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), "postern completion "));
  // Program that lists the profile names.
  mkdirSync(join(dir, "bin"));
  writeFileSync(join(dir, "bin/postern"), `#!/bin/sh\nexec '${process.execPath}' '${PROGRAM}' "$@"\n`);
  chmodSync(join(dir, "bin/postern"), 0o755);
  env = {
    PATH: [join(dir, "bin"), process.env.PATH].join(delimiter),
    HOME: dir,
    XDG_CONFIG_HOME: join(dir, "config"),
    TERM: "xterm",
  };
  const profile = { apiUrl: "http://127.0.0.1:1", rootKey: "root_verySecret0123456789" };
  writeProfiles(join(dir, "config/postern/profiles.json"), { profiles: { shop: profile, staging: profile } });
  writeFileSync(join(dir, "root key.txt"), "");
  mkdirSync(join(dir, "data"));
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, text } = await runPostern(["completion", shell]);
    expect(code).toBe(0);
    writeFileSync(join(dir, `postern.${shell}`), text);
  }
  commands = await Promise.all(COMMANDS.map(({ load }) => load()));
});
afterAll(() => rmSync(dir, { recursive: true }));

const shellOf = (name: string): Promise<string> =>
  findPart(name, `install ${name}`, [
    { name: "PATH", attempt: () => findBinary([name]) },
    { name: "Debian's packages", attempt: () => unpackedProgram({ packages: [name] }, [name]) },
  ]);

/** Typed text with an incomplete last word, and its completions. */
const CASES: { typed: string; found: readonly string[] }[] = [
  { typed: "postern ke", found: ["key"] },
  { typed: "postern expl", found: ["explain"] },
  { typed: "postern key re", found: ["reencrypt", "reroll"] },
  { typed: "postern key create --exp", found: ["--expires"] },
  { typed: "postern api update --key-encryption ", found: ["off", "on"] },
  { typed: "postern operator --log-format j", found: ["json"] },
  { typed: "postern rootkey rotate --until ", found: ["now"] },
  { typed: "postern key create --name ", found: [] },
  { typed: "postern key create --recoverable --dis", found: ["--disabled"] },
  { typed: "postern key list --profile s", found: ["shop", "staging"] },
  { typed: "postern profile use --name sh", found: ["shop"] },
  { typed: "postern profile add --name s", found: [] },
  { typed: "postern explain --root-key-file root", found: ["root key.txt"] },
  { typed: "postern validate -f root", found: ["root key.txt"] },
  { typed: "postern simulate --fixtures root", found: ["root key.txt"] },
  { typed: "postern dev --data-dir da", found: ["data"] },
  { typed: "postern nothing --pro", found: [] },
  { typed: "kubectl-postern role l", found: ["list"] },
];

test.each(CASES)("bash completes the command line: $typed", async ({ typed, found }) => {
  const words = typed.split(" ");
  const script = `source '${dir}/postern.bash'; COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}
    $(complete -p ${words[0]} | sed 's/.*-F \\([^ ]*\\).*/\\1/'); printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, stderr } = await run(await shellOf("bash"), ["--norc", "-c", script], { env, cwd: dir });
  expect(stderr).toBe("");
  expect(
    stdout
      .trim()
      .split("\n")
      .filter((word) => word !== "")
      .sort(),
  ).toEqual(found);
});

test.each(CASES)(
  "fish completes the command line: $typed",
  async ({ typed, found }) => {
    const script = `source '${dir}/postern.fish'; complete -C '${typed}'`;
    const { stdout, stderr } = await run(await shellOf("fish"), ["--no-config", "-c", script], { env, cwd: dir });
    expect(stderr).toBe("");
    const offered = stdout
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => line.split("\t")[0]?.replace(/\/$/, ""));
    expect(offered.sort()).toEqual(found);
  },
  60_000,
);

describe("zsh", () => {
  /** Returns the line after Tab: the completed word, or the common prefix of several. */
  async function complete(typed: string): Promise<string> {
    const zsh = await shellOf("zsh");
    // An unpacked zsh needs explicit paths for its modules and functions.
    const lib = join(unpackedRoot(zsh), "usr");
    if (existsSync(join(lib, "share/zsh"))) {
      const paths = `module_path=(${lib}/lib/*/zsh/*(/)); fpath=(${lib}/share/zsh/functions/**/*(/))\n`;
      writeFileSync(join(dir, ".zshenv"), paths);
    }
    const response = join(dir, "answer");
    rmSync(response, { force: true });
    writeFileSync(
      join(dir, ".zshrc"),
      `PS1='ready> '; autoload -Uz compinit; compinit -u -D; source '${dir}/postern.zsh'
       tell() { print -rn -- "$BUFFER" > '${response}.new'; mv '${response}.new' '${response}' }
       zle -N tell; bindkey '^T' tell; bindkey '^I' complete-word; unsetopt beep\n`,
    );
    const child = spawn("script", ["-qec", `${zsh} -i`, "/dev/null"], { cwd: dir, env: { ...env, ZDOTDIR: dir } });
    const exited = new Promise((done) => child.once("exit", done));
    let shown = "";
    child.stdout.on("data", (chunk: Buffer) => {
      shown += chunk.toString();
    });
    try {
      await waitFor("the prompt", () => shown.includes("ready> "), { deadlineMs: 30_000 });
      child.stdin.write(`${typed}\t`);
      // Send the key after the completion, which may run another program.
      child.stdin.write("\u0014");
      await waitFor(`the line: ${shown}`, () => existsSync(response), { deadlineMs: 30_000 });
      return readFileSync(response, "utf8");
    } finally {
      child.kill();
      await exited;
    }
  }

  test.each([
    { typed: "postern expl", line: "postern explain " },
    { typed: "postern key crea", line: "postern key create " },
    { typed: "postern key re", line: "postern key re" },
    { typed: "postern key create --exp", line: "postern key create --expires " },
    { typed: "postern api update --key-encryption of", line: "postern api update --key-encryption off " },
    { typed: "postern key create --name x", line: "postern key create --name x" },
    { typed: "postern profile use --name sh", line: "postern profile use --name shop " },
    { typed: "postern explain --root-key-file root", line: "postern explain --root-key-file root\\ key.txt " },
    { typed: "kubectl-postern role li", line: "kubectl-postern role list " },
  ])(
    "zsh completes the command line: $typed",
    async ({ typed, line }) => {
      expect(await complete(typed)).toBe(line);
    },
    90_000,
  );
});

test("completion scripts contain every command, option and value, but no profile data", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const text = readFileSync(join(dir, `postern.${shell}`), "utf8");
    for (const { name, options } of commands) {
      expect(text).toContain(name);
      for (const option of Object.keys(options)) expect(text).toMatch(new RegExp(`(--|-l )${option}\\b`));
    }
    expect(text).not.toContain("verySecret");
  }
});

test("each shell parses its generated completion script", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { stderr } = await run(await shellOf(shell), ["-n", join(dir, `postern.${shell}`)], { env });
    expect(stderr).toBe("");
  }
});

test("completion treats quotes and shell characters in help as plain text", async () => {
  const strange = 'it\'s $(touch owned) `touch owned`; "x" \\ [a]:b';
  const { bashCompletion } = await import("./bash.ts");
  const { zshCompletion } = await import("./zsh.ts");
  const { fishCompletion } = await import("./fish.ts");
  const command = {
    name: "try it",
    summary: strange,
    options: { word: { type: "string", help: strange, placeholder: "X'$(touch owned)" } },
    run: async () => 0,
  } as Command;
  for (const [shell, text] of [
    ["bash", bashCompletion([command])],
    [
      "zsh",
      `compdef() { : }\n${zshCompletion([command])}\nfunction _describe { : }; function _message { : }; words=(postern try it --word x) CURRENT=5; _postern`,
    ],
    ["fish", fishCompletion([command])],
  ] as const) {
    writeFileSync(join(dir, "strange"), text);
    const { stderr } = await run(await shellOf(shell), [join(dir, "strange")], { env, cwd: dir });
    expect(stderr).toBe("");
  }
  expect(existsSync(join(dir, "owned"))).toBe(false);
});

test("completion scripts suggest option values from placeholders, and nouns from command names", () => {
  const of = (placeholder: string) => valuesOf({ name: "x" }, "y", { type: "string", help: "", placeholder });
  expect(of("on|off")).toEqual({ kind: "words", words: ["on", "off"] });
  expect(of("TIME|never")).toEqual({ kind: "words", words: ["never"] });
  expect([of("TEXT"), of("PATH"), of("DIR"), of("daily:N|monthly:N:DAY")].map(({ kind }) => kind)).toEqual([
    "text",
    "file",
    "folder",
    "text",
  ]);
  expect(
    nounsOf(commands)
      .filter(({ verbs }) => verbs.length === 0)
      .map(({ name }) => name),
  ).toContain("explain");
});
