import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { masked, responseText } from "./masked.ts";

/*
 * A page of docs/guides/api as something that runs. Its `sh` blocks run in order, in one environment; a `json` or `text` block
 * right after one is what the block printed. A line `export NAME=acme_…` takes its value out of what was printed last, as
 * a reader does who copies it.
 */

const ROOT = resolve(import.meta.dirname, "../../..");
const FOLDER = join(ROOT, "docs/guides/api");
const run = promisify(execFile);
/** A command that waits for ever fails the test by itself, with its text. */
const COMMAND_MS = 60_000;
const USAGE_MS = 15_000;

export interface Step {
  readonly commands: string;
  /** What the page shows as printed; undefined where it shows nothing. */
  readonly shown: { readonly language: string; readonly text: string } | undefined;
}

export interface Page {
  readonly name: string;
  readonly text: string;
  readonly steps: readonly Step[];
  /** The permissions in the sentence "The root key needs …". */
  readonly permissions: readonly string[];
}

/** The languages of blocks that show what was printed. */
const PRINTED: ReadonlySet<string> = new Set(["json", "text"]);
const BLOCK = /^```(\w+)\n(.*?)^```$/gms;

export function readPage(name: string): Page {
  const text = readFileSync(join(FOLDER, name), "utf8");
  const [, needs = ""] = /The\s+root\s+key\s+needs\s(.*?`)\.\s/s.exec(text) ?? [];
  return {
    name,
    text,
    steps: stepsOf(text),
    permissions: [...needs.matchAll(/`([^`]+)`/g)].map(([, one = ""]) => one),
  };
}

function stepsOf(text: string): Step[] {
  const blocks = [...text.matchAll(BLOCK)].map(({ 0: whole, 1: language = "", 2: body = "", index }) => ({
    language,
    body,
    start: index,
    end: index + whole.length,
  }));
  return blocks.flatMap(({ language, body, end }, at) => {
    if (language !== "sh") return [];
    const next = blocks[at + 1];
    const follows = next !== undefined && PRINTED.has(next.language) && text.slice(end, next.start).trim() === "";
    return [{ commands: body, shown: follows ? { language: next.language, text: next.body } : undefined }];
  });
}

/** The page that has a test of its own, since it installs programs. */
export const GENERATED_CLIENTS = "../../../examples/clients/README.md";

/** All others, the first one first. */
export function readPages(): Page[] {
  const names = readdirSync(FOLDER).filter((name) => name.endsWith(".md") && name !== "README.md");
  return ["README.md", ...names.sort()].map(readPage);
}

/** The shell function `call` that the first page defines for all others. */
export function callFunction(): string {
  const found = readPage("README.md").steps.find(({ commands }) => commands.startsWith("call() {"));
  if (found === undefined) throw new Error("docs/guides/api/README.md does not define call()");
  return found.commands;
}

export interface Shell {
  /** Where commands run; the checkout when left out. */
  readonly folder?: string;
  /** Variables that the reader has set. */
  readonly variables: Record<string, string>;
  /** What was printed last. */
  printed: string;
}

export interface Ran {
  readonly commands: string;
  readonly shown: string;
  readonly printed: string;
}

/**
 * Runs the steps in `shell`, each with `before` in front of it. Returns those that show an answer, with what was printed in the same form:
 * equal when the page is right. Throws with the command when one fails.
 */
export async function runSteps(steps: readonly Step[], shell: Shell, before = ""): Promise<Ran[]> {
  const all: Ran[] = [];
  for (const { commands, shown } of steps) {
    const rest = commands.split("\n").filter((line) => !setVariable(line, shell));
    const script = rest.join("\n").trim();
    if (script === "") continue;
    const env = { ...process.env, DATABASE_URL: "", REDIS_URL: "", ...shell.variables };
    const options = { cwd: shell.folder ?? ROOT, env, timeout: COMMAND_MS, maxBuffer: 16 * 1024 * 1024 };
    const printed = async (): Promise<string> => {
      const { stdout } = await run("sh", ["-c", `set -e\n${before}\n${script}`], options).catch((error: Error) => {
        throw new Error(`this failed:\n${script}\n`, { cause: error });
      });
      return stdout;
    };
    let stdout = await printed();
    // Usage is there some seconds later, so a question about it is asked until it is.
    const giveUpAt = performance.now() + USAGE_MS;
    while (shown !== undefined && /^call analytics\./.test(script) && performance.now() < giveUpAt) {
      if (inFormOf(shown, stdout) === shown.text) break;
      await sleep(200);
      stdout = await printed();
    }
    if (stdout !== "") shell.printed = stdout;
    if (shown !== undefined) all.push({ commands: script, shown: shown.text, printed: inFormOf(shown, stdout) });
  }
  return all;
}

/** Sets the variable of a line `export NAME=VALUE`, and says whether it was one. `acme_…` is a word with that beginning that was printed last. */
function setVariable(line: string, { variables, printed }: Shell): boolean {
  const [, name, written] = /^export (\w+)=(\S*)/.exec(line) ?? [];
  if (name === undefined || written === undefined) return false;
  const begin = written.endsWith("…") ? written.slice(0, -1) : undefined;
  // A variable that is set from outside, as that of a server on another port, stays.
  if (begin === undefined) variables[name] ??= written;
  else {
    const [found] = new RegExp(`\\b${begin}\\w+`).exec(printed) ?? [];
    if (found === undefined) throw new Error(`nothing like ${written} for ${name} in:\n${printed}`);
    variables[name] = found;
  }
  return true;
}

/**
 * Returns the output in the form that the page has. JSON: the last line with ids, keys and times masked, and without `meta` if the page omits it.
 * Text: the lines that the page shows, compared by the words before each `…`.
 */
function inFormOf(shown: { language: string; text: string }, printed: string): string {
  if (shown.language === "json") {
    const line = printed.trim().split("\n").at(-1) ?? "";
    const atItsPort = line.replaceAll(/http:\/\/127\.0\.0\.1:\d+/g, "http://127.0.0.1:8080");
    const { meta, ...rest } = JSON.parse(atItsPort) as Record<string, unknown>;
    const value = shown.text.includes('"meta": { "requestId"') ? { ...rest, meta } : rest;
    return responseText(masked(value, Date.now()));
  }
  const lines = printed.split("\n");
  const found = shown.text
    .trimEnd()
    .split("\n")
    .map((line) => (lines.some((one) => matches(line, one)) ? line : `(not printed: ${line})`));
  return `${found.join("\n")}\n`;
}

const words = (text: string): string => text.trim().replaceAll(/\s+/g, " ");

function matches(shown: string, printed: string): boolean {
  const parts = words(shown).split("…").map(RegExp.escape);
  return new RegExp(`^${parts.join(".*")}$`).test(words(printed));
}

/** Writes what was printed into the page, in place of what it shows. */
export function writeResponses({ name, text }: Page, ran: readonly Ran[]): void {
  const left = [...ran];
  const written = text.replaceAll(/(^```sh\n.*?^```\n\s*^```json\n)(.*?)(^```$)/gms, (whole, before, shown, end) => {
    const next = left.findIndex((one) => one.shown === shown);
    if (next < 0) return whole;
    const [found] = left.splice(next, 1);
    return `${before}${found?.printed}${end}`;
  });
  writeFileSync(join(FOLDER, name), written);
}
