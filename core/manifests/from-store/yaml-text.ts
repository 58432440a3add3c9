import { Document, visit } from "yaml";
import { checkManifest } from "../check.ts";
import { DURATION_PATTERN } from "../duration.ts";
import { API_VERSION } from "../fields.ts";
import { manifestsOf, type WrittenManifest } from "./manifests-of.ts";
import type { StoredObject } from "./stored-object.ts";

/*
 * Manifests as YAML text. This code includes the schemas of all kinds. It is too large for the first page load, so the dashboard loads it
 * on demand.
 */

const COMMENT_WIDTH = 100;

/**
 * Returns one document for each manifest, ready for `kubectl apply -f -`. A comment above each lists the values that the CRD would reject;
 * the database allows more values than a manifest.
 */
export function yamlOf(object: StoredObject): string {
  return manifestsOf(object).map(documentOf).join("---\n");
}

function documentOf({ kind, metadata, spec, notes }: WrittenManifest): string {
  const manifest = { apiVersion: API_VERSION, kind, metadata, spec };
  const problems = checkManifest(manifest).map(
    ({ location, message }) => `Kubernetes would reject this manifest: ${location} ${message}.`,
  );
  return `${[...problems, ...notes].map(commentOf).join("")}${textOf(manifest)}`;
}

/**
 * Returns a YAML excerpt that shows the field to edit, such as `spec:
 *   limit: 5`. `path` is the path of the field: `["spec", "limit"]`.
 */
export function snippetOf(path: readonly string[], value: unknown): string {
  return textOf(path.reduceRight<unknown>((inner, name) => ({ [name]: inner }), value));
}

/**
 * Writes long strings on one line and writes no aliases, because wrapped strings and aliases are harder to edit. kubectl reads YAML 1.1, in
 * which `yes`, `0o7` and `1:30` are not strings, so all strings except plain words are quoted.
 */
function textOf(value: unknown): string {
  const document = new Document(value, { aliasDuplicateObjects: false });
  visit(document, {
    Scalar: (key, scalar) => {
      if (key !== "key" && typeof scalar.value === "string" && !isPlain(scalar.value)) scalar.type = "QUOTE_DOUBLE";
    },
  });
  return document.toString({ lineWidth: 0, doubleQuotedMinMultiLineLength: Number.POSITIVE_INFINITY });
}

/**
 * Matches text that needs no quotes: words of letters, digits and a few punctuation characters, separated by single blanks or colons. The
 * first word begins with a letter.
 */
const WORDS = /^[A-Za-z][A-Za-z0-9_.*/,()-]*([ :][A-Za-z0-9_.*/,()-]+)*$/;
const NOT_TEXT = /^(y|n|yes|no|on|off|true|false|null)$/i;

/** Durations such as `1h30m` need no quotes, because no YAML version parses them as numbers. */
const DURATION = new RegExp(DURATION_PATTERN);

const isPlain = (text: string): boolean => DURATION.test(text) || (WORDS.test(text) && !NOT_TEXT.test(text));

/** Returns a note as a comment line. Notes may quote text from callers, so characters that would end the line are escaped as in JSON. */
function commentOf(note: string): string {
  const lines: string[] = [];
  let line = "";
  for (const word of oneLine(note).split(" ")) {
    if (line !== "" && line.length + word.length >= COMMENT_WIDTH) {
      lines.push(line);
      line = "";
    }
    line += line === "" ? word : ` ${word}`;
  }
  return [...lines, line].map((text) => `# ${text}\n`).join("");
}

const oneLine = (text: string): string =>
  text.replace(/[\p{Cc}\u2028\u2029\ufeff]/gu, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
