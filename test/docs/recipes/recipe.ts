import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { text } from "node:stream/consumers";

/*
 * A recipe of CONTRIBUTING.md, followed on a copy of the working tree as a person would follow it: files are added, text is put
 * into files that are there, and what the recipe says is run.
 */

/** What one step of the recipe writes. */
export interface Part {
  /** The number of the step that asks for it. */
  readonly step: number;
  /** From the root of the project. */
  readonly file: string;
  readonly text: string;
  /** Stands once in the file, which is there already: the text goes behind it. */
  readonly after?: string;
  /** The same: the text takes its place. With neither, the text is a new file. */
  readonly instead?: string;
}

/** Something that is forgotten, and the test that notices. */
export interface Omission {
  readonly what: string;
  readonly leaveOut: (copy: Copy) => Promise<void>;
  readonly noticedBy: {
    /** A test in it fails. */
    readonly file: string;
    /** Stands in what the test run says. */
    readonly says: RegExp;
  };
  /** It breaks more than its own test: tried by itself. */
  readonly alone?: true;
}

export interface Recipe {
  /** The heading in CONTRIBUTING.md. */
  readonly heading: string;
  readonly parts: readonly Part[];
  /** Steps that nothing is written for, and why. */
  readonly notTaken: Readonly<Record<number, string>>;
  /** Run as they are: they look at lists of everything. */
  readonly lists: readonly string[];
  /**
   * Files of which only some tests are run: those whose names have one of these words. Each has to have one, which passes. Words
   * that the recipe itself brings, because names of other tests change.
   */
  readonly about: { readonly words: readonly string[]; readonly files: readonly string[] };
  readonly omissions: readonly Omission[];
}

const ROOT = resolve(import.meta.dirname, "../../..");
/** What no checkout has, and what is only linked. */
const NOT_COPIED = new Set(["node_modules", ".git", ".postern", "coverage", "bench-results"]);

export interface Run {
  readonly code: number | null;
  readonly output: string;
}

/** A test run in Jest's format. */
interface Report {
  readonly testResults: ReadonlyArray<{
    readonly name: string;
    readonly message: string;
    readonly assertionResults: ReadonlyArray<{
      readonly fullName: string;
      readonly status: string;
      readonly failureMessages: readonly string[];
    }>;
  }>;
}

export interface TestRun {
  /** As a person reads it. */
  readonly output: string;
  /** Files from the root, in which a test passed. */
  readonly passed: ReadonlySet<string>;
  /** By file from the root: everything that was said of what failed in it. */
  readonly failures: ReadonlyMap<string, string>;
}

/** A copy of the working tree, with the project's node_modules. */
export class Copy {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
  }

  static async make(): Promise<Copy> {
    const root = await mkdtemp(join(tmpdir(), "postern-recipe-"));
    const isCopied = (path: string) => !NOT_COPIED.has(path.slice(ROOT.length + 1).split(sep)[0] ?? "");
    await cp(ROOT, root, { recursive: true, filter: isCopied });
    await symlink(join(ROOT, "node_modules"), join(root, "node_modules"));
    return new Copy(root);
  }

  async add({ file, text: added, after, instead }: Part): Promise<void> {
    if (after !== undefined) return this.replace(file, after, after + added);
    if (instead !== undefined) return this.replace(file, instead, added);
    await mkdir(dirname(join(this.root, file)), { recursive: true });
    await writeFile(join(this.root, file), added, { flag: "wx" });
  }

  /** @throws when `from` does not stand in the file exactly once. */
  async replace(file: string, from: string | RegExp, to: string): Promise<void> {
    const path = join(this.root, file);
    const before = await readFile(path, "utf8");
    const count = before.split(from).length - 1;
    if (count !== 1) throw new Error(`${file} has ${count} times what should stand there once: ${from}`);
    await writeFile(
      path,
      before.replace(from, () => to),
    );
  }

  /** The file is as the project has it. */
  async restore(file: string): Promise<void> {
    await cp(join(ROOT, file), join(this.root, file));
  }

  async run(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Run> {
    const child = spawn(command, args, {
      cwd: this.root,
      stdio: ["ignore", "pipe", "pipe"],
      // What the outer run tells its workers is not meant for an inner one, but for where the shared parts are.
      env: {
        ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(VITEST|TEST_PROGRAM)/.test(name))),
        ...env,
      },
    });
    const [out, error, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
    return { code, output: out + error };
  }

  program(name: string): string {
    return join(this.root, "node_modules", ".bin", name);
  }

  /**
   * Runs tests on the parts of the outer run: all of the files, or those whose names have one of the words. Without a second
   * try, because some are to fail.
   */
  async test(files: readonly string[], words: readonly string[] = []): Promise<TestRun> {
    const report = join(this.root, ".postern", `${randomUUID()}.json`);
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const named = words.length === 0 ? [] : ["-t", words.join("|")];
    const args = ["run", "--maxWorkers=1", ...reporters, ...named, ...files];
    const { output } = await this.run(this.program("vitest"), args, { CI: "", NO_COLOR: "1" });
    const written = await readFile(report, "utf8").catch(() => {
      throw new Error(`no test has run:\n${output}`);
    });
    await rm(report);
    const { testResults } = JSON.parse(written) as Report;
    const results = testResults.map((one) => ({ ...one, file: one.name.slice(this.root.length + 1) }));
    const failures = results.map(({ file, message, assertionResults }) => {
      const failed = assertionResults.filter(({ status }) => status === "failed");
      const said = failed.map((one) => [one.fullName, ...one.failureMessages].join("\n"));
      return [file, [message, ...said].filter((one) => one !== "").join("\n")] as const;
    });
    const hasPassed = ({ assertionResults }: (typeof results)[number]) =>
      assertionResults.some(({ status }) => status === "passed");
    return {
      output,
      passed: new Set(results.filter(hasPassed).map(({ file }) => file)),
      failures: new Map(failures.filter(([, said]) => said !== "")),
    };
  }

  async remove(): Promise<void> {
    await rm(this.root, { recursive: true, force: true });
  }
}

/** The steps of a recipe, by number, as CONTRIBUTING.md has them. @throws when there is no such heading, or no step. */
export function stepsOf(contributing: string, heading: string): ReadonlyMap<number, string> {
  const section = contributing.split(/^## /m).find((one) => one.startsWith(`${heading}\n`));
  if (section === undefined) throw new Error(`CONTRIBUTING.md has no section ${heading}`);
  // A step ends where the next one begins, or with a blank line.
  const steps = [...section.matchAll(/^(\d+)\. ((?:.+\n)(?: .+\n)*)/gm)];
  if (steps.length === 0) throw new Error(`CONTRIBUTING.md has no steps below ${heading}`);
  return new Map(steps.map(([, number = "", step = ""]) => [Number(number), step]));
}
