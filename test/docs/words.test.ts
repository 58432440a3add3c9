import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";

/* Comments, test names, help texts and descriptions use the field's terms. The list is short: add what reviewers keep finding. */

const ROOT = resolve(import.meta.dirname, "../..");
const FOLDERS = ["core", "edge", "api-server", "sidecar", "operator", "cli", "scripts", "examples", "test"];
/** This file holds the words themselves. */
const EXCEPT: ReadonlySet<string> = new Set(["test/docs/words.test.ts"]);

/** What we do not write, and what we write instead. `quoted` words, such as the Unix user "nobody", are not meant. */
const WORDS: readonly { readonly found: RegExp; readonly instead: string }[] = [
  { found: /(?<!["'])\bnobody\b(?!["'])/i, instead: "name the subject: no caller, no process, no other reader" },
  { found: /\bwho(?:m)?ever\b/i, instead: "name the subject: a caller that, the process that" },
  { found: /\bin a circle\b/i, instead: "deadlock" },
  { found: /\banew\b/i, instead: "again" },
  { found: /\bof late\b/i, instead: "recently" },
  { found: /\bthe truth\b/i, instead: "the source of truth, or the exact value" },
  { found: /^Gives (?!up\b|back\b)/, instead: "Returns" },
  { found: /\bThrows `?\w+`? never\b/, instead: "Never throws" },
  { found: /\b(?:is|are) made up for\b/i, instead: "is done later, is refilled later" },
];

/** The texts of one line that a person reads: a comment, the name of a test, a help text, a description. */
function textsOf(line: string): string[] {
  const comment = /(?:^\s*(?:\/\*\*?|\*|\/\/|--)|\s(?:\/\/|--)\s)\s*(.*)$/.exec(line)?.[1];
  const title = /\b(?:test|it|describe)(?:\.\w+)?\(\s*(["`])(.*?)\1/.exec(line)?.[2];
  const help = /(?:\.describe\(|\b(?:help|summary|description): )(["`])(.*?)\1/.exec(line)?.[2];
  return [comment, title, help].filter((text) => text !== undefined);
}

const files = FOLDERS.flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts") && !name.includes("node_modules/"))
    .map((name) => `${folder}/${name}`),
).filter((name) => !EXCEPT.has(name));

test("user-visible texts use plain words", () => {
  const found = files.flatMap((file) =>
    readFileSync(join(ROOT, file), "utf8")
      .split("\n")
      .flatMap((line, at) =>
        WORDS.filter((word) => textsOf(line).some((text) => word.found.test(text))).map(
          ({ found: word, instead }) => `${file}:${at + 1} has ${word.source}; write: ${instead}`,
        ),
      ),
  );
  expect(found).toEqual([]);
});

test.each([
  { line: "  /** Gives the counts afterwards. */", words: 1 },
  { line: "// so that two writers never wait in a circle, whoever they are", words: 2 },
  { line: "-- nobody waits for it any more", words: 1 },
  { line: 'test("an empty Redis is projected anew", () => {', words: 1 },
  { line: '  help: "whoever uses it gets 401",', words: 1 },
  { line: '/** Runs as the user "nobody". */', words: 0 },
  { line: "  /** Gives up after a second. */", words: 0 },
  { line: 'const name = "nobody anew";', words: 0 },
])("plain word check finds $words words in: $line", ({ line, words }) => {
  expect(WORDS.filter(({ found }) => textsOf(line).some((text) => found.test(text)))).toHaveLength(words);
});

/** A schema, as far as its texts matter. */
interface Described {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Described>>;
}

test("chart value descriptions name their subject", () => {
  const schema = JSON.parse(readFileSync(join(ROOT, "charts/postern/values.schema.json"), "utf8")) as Described;
  const found: string[] = [];
  const visit = (path: string, { description = "", properties = {} }: Described): void => {
    if (
      path !== "" &&
      /^(?:(?:Of|Its|At|Which|How many[;.]|Where they|Likewise|Whether (?:there|they|it))\b)/.test(description)
    )
      found.push(`${path}: ${description}`);
    for (const [name, value] of Object.entries(properties)) visit(path === "" ? name : `${path}.${name}`, value);
  };
  visit("", schema);
  expect(Object.keys(schema.properties ?? {}).length).toBeGreaterThan(20);
  expect(found).toEqual([]);
});
