import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { DEGRADATIONS } from "../../api-server/health/health.ts";
import { COMPONENT_IMPORTS } from "../import-rules.ts";

/* docs/operations/logs.md lists every log line at warn and above, and log lines named on other pages exist in the code. */

const ROOT = resolve(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const sources = globSync(`{${Object.keys(COMPONENT_IMPORTS).join()}}/**/*.ts`, { cwd: ROOT }).filter(
  (file) => !/\.test\.ts$|\/test\//.test(file),
);

/** Possible texts of messages that are not literals; the texts are in the same file. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  "api-server/health/watch.ts DEGRADATIONS[reason]": Object.values(DEGRADATIONS),
  // The callers of logThrottled pass the message, see below.
  "edge/log-throttle.ts message": [],
  "api-server/credits/refill.ts message": ["a key was not refilled; the next run retries it"],
  "api-server/plugins/errors.ts message": ["… at …"],
  "api-server/domain/ratelimits/counting.ts UNCOUNTED[done]": [
    "limits decided in this process: the shared counters are away",
    "quotas not counted: the shared counters are away",
  ],
  "cli/redis-errors.ts message": [
    "Redis rejected the user; check its name, password and ACL",
    "no connection to Redis; retrying",
  ],
  "sidecar/decision/record-uncounted.ts MESSAGES[what]": [
    "limits cannot be counted; onCounterFailure applies",
    "credits cannot be spent; onCreditFailure applies",
  ],
  "sidecar/internal-errors.ts MESSAGES[where]": [
    "an internal error of the gate ended a request or connection",
    "an uncaught error occurred; the gate continues",
  ],
  "sidecar/ext-auth/open.ts MESSAGES[kind]": [
    "a request for a decision came from an untrusted address and was rejected",
    "a request for a decision does not identify the request to evaluate and was rejected",
  ],
};

/** Returns the text between the bracket at `open` and the matching one. */
function bracketed(source: string, open: number): string {
  let depth = 0;
  for (let at = open; at < source.length; at++) {
    const letter = source[at] ?? "";
    if (letter === '"' || letter === "`") {
      at = source.indexOf(letter, at + 1);
      if (at < 0) break;
    } else if ("([{".includes(letter)) depth++;
    else if (")]}".includes(letter) && --depth === 0) return source.slice(open + 1, at);
  }
  throw new Error(`no end: ${source.slice(open, open + 100)}`);
}

/** Returns the last argument of a call. */
function lastArgument(inside: string): string {
  const text = inside.trim().replace(/,$/, "");
  const [, literal] = /((?:"[^"]*")|(?:`[^`]*`))$/.exec(text) ?? [];
  return (literal ?? text.slice(text.lastIndexOf(",") + 1)).trim();
}

const textOf = (argument: string): string | undefined =>
  /^["`]/.test(argument) ? argument.slice(1, -1).replaceAll(/\$\{(?:[^{}]|\{[^}]*\})*\}/g, "…") : undefined;

interface Line {
  readonly file: string;
  readonly text: string;
  readonly level: string;
}

function linesOf(file: string): Line[] {
  const source = read(file);
  const calls = [...source.matchAll(/\b#?(?:log|logger)\.(warn|error|fatal)\(/g)].map(
    ({ index, 0: call, 1: level = "" }) => ({
      level,
      argument: lastArgument(bracketed(source, index + call.length - 1)),
    }),
  );
  const throttle = [...source.matchAll(/\blogThrottled\(/g)].flatMap(({ index, 0: call }) => {
    const inside = bracketed(source, index + call.length - 1);
    const [, argument = "message"] = /(?<!\.)\bmessage:\s*((?:"[^"]*")|(?:`[^`]*`)|[\w[\]]+)/.exec(inside) ?? [];
    return file === "edge/log-throttle.ts" ? [] : [{ level: "warn", argument }];
  });
  return [...calls, ...throttle].flatMap(({ level, argument }) => {
    const text = textOf(argument);
    const texts = text === undefined ? ELSEWHERE[`${file} ${argument}`] : [text];
    if (texts === undefined)
      throw new Error(`${file}: what is logged by ${argument} is not known; add it to ELSEWHERE`);
    return texts.map((one) => ({ file, text: one, level }));
  });
}

const logged = sources.flatMap(linesOf);
const page = read("docs/operations/logs.md");
const entries = page.slice(0, page.indexOf("## Level info"));
const rows = [...entries.matchAll(/^- `(.*?)`(?: \((error|fatal)\))?: (.*)$/gm)].map(
  ([, text = "", level = "warn", means = ""]) => ({ text, level, means }),
);

test("log lines are found in the sources of every component", () => {
  expect(logged.length).toBeGreaterThan(70);
  for (const part of ["api-server", "sidecar", "operator", "cli", "edge"]) {
    expect(
      logged.some(({ file }) => file.startsWith(`${part}/`)),
      part,
    ).toBe(true);
  }
});

test("log page lists exactly the warnings and errors of the code, with their levels", () => {
  const said = new Set(logged.map(({ text, level }) => `${level}: ${text}`));
  expect(rows.map(({ text, level }) => `${level}: ${text}`).sort()).toEqual([...said].sort());
  for (const { text, means } of rows) expect(means.length, text).toBeGreaterThan(5);
});

describe("documented log lines are logged", () => {
  const all = sources.map(read).join("\n");
  const isLogged = (text: string): boolean =>
    logged.some((line) => line.text === text) ||
    all.includes(text) ||
    all.includes(text.replace("--… ", ["--$", "{name} "].join("")));

  test("documented info log lines exist in the code", () => {
    const table = page.slice(page.indexOf("## Level info"));
    const named = [...table.matchAll(/^- (`.*`) \(/gm)].flatMap(([, cell = ""]) => [...cell.matchAll(/`([^`]+)`/g)]);
    expect(named.length).toBeGreaterThan(15);
    for (const [, text = ""] of named) expect(isLogged(text), text).toBe(true);
  });

  test("log lines named on other pages exist in the code", () => {
    const named = globSync("docs/operations/*.md", { cwd: ROOT }).flatMap((name) =>
      [...read(name).matchAll(/\blogs?(?: lines?| says| has)?\s+`([^`]+)`/g)].map(([, text = ""]) => ({ name, text })),
    );
    expect(named.length).toBeGreaterThan(15);
    for (const { name, text } of named) expect(isLogged(text), `${name}: ${text}`).toBe(true);
  });
});
