import { type Document, isMap, LineCounter, parseAllDocuments } from "yaml";
import { parseManifest } from "../../../core/manifests/check.ts";
import type { Kind } from "../../../core/manifests/index.ts";
import { lineFinder, pathOf } from "../../../core/manifests/yaml-lines.ts";

/** Namespace of an object whose manifest does not name one. */
const DEFAULT_NAMESPACE = "default";
const FILE_LENGTH_MAX = 4 * 1024 * 1024;

/** Content of a valid document. */
export interface Desired {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: unknown;
}

/** A problem in a document, described for the person who edits the file. */
export interface DocumentProblem {
  readonly file: string;
  /** Position of the document in its file, starting with 1. */
  readonly document: number;
  /** Line of the error in the file, starting with 1. If the position of the error is unknown, it is the first line of the document. */
  readonly line: number;
  /** Label of the object, `Kind namespace/name`, if the document has these fields. */
  readonly object?: string;
  readonly location: string;
  readonly message: string;
}

export interface ReadDocument {
  /** Position of the document in its file, starting with 1. */
  readonly document: number;
  readonly line: number;
  /** Identity of the object; `undefined` if it is not readable. */
  readonly id?: string;
  /** `apiVersion` of the document; `undefined` if it is not readable. */
  readonly apiVersion?: string;
  readonly desired?: Desired;
  readonly problems: readonly DocumentProblem[];
  /** Returns the line of a problem at this location in the document. */
  lineOf(location: string): number;
}

/** Returns a text that is unique to an object within a source. */
export const identityOf = ({ kind, namespace, name }: { kind: string; namespace: string; name: string }): string =>
  `${kind} ${namespace}/${name}`;

/**
 * Reads each document of a file separately, so that an invalid document does not affect the others. Empty documents are skipped, and the
 * items of a `List` are read like documents.
 */
export function readDocuments(file: string, text: string): ReadDocument[] {
  if (text.length > FILE_LENGTH_MAX) {
    const message = `the file is larger than ${FILE_LENGTH_MAX} characters`;
    const at = { document: 1, line: 1 };
    return [{ ...at, problems: [{ file, ...at, location: "file", message }], lineOf: () => 1 }];
  }
  return splitDocuments(text).flatMap(({ text: part, line }, index) => {
    // Suppresses warnings, which would go to the console; parseManifest reports problems with their location. Rejects mappings as keys,
    // because the parser would convert each of them to a string once per enclosing mapping.
    const lines = new LineCounter();
    const [document] = parseAllDocuments(part, { logLevel: "error", lineCounter: lines, stringKeys: true });
    const isEmpty = document === undefined || (document.contents === null && document.errors.length === 0);
    if (isEmpty) return [];
    const lineIn = lineFinder(document, lines);
    const lineOf = (location: string): number => line + lineIn(pathOf(location)) - 1;
    const { value, error } = toValue(document);
    const at = { file, document: index + 1, line };
    return error === undefined ? readValue(value, at, lineOf) : [readFaulty(value, error, at, lineOf)];
  });
}

/**
 * Splits a file into documents before parsing. `---` at the beginning of a line always ends a document (YAML 1.2, 9.1.2), but after an
 * unclosed bracket, the parser would read all following documents as contents of the bracket. `line` starts with 1.
 */
function splitDocuments(text: string): Array<{ text: string; line: number }> {
  const documents: Array<{ text: string; line: number }> = [];
  let lines: string[] = [];
  let line = 1;
  const end = (next: number) => {
    // Directives and comments before the first marker do not count as a document.
    if (lines.some((one) => /^[^%#\s]|^\s+[^#\s]/.test(one))) documents.push({ text: lines.join("\n"), line });
    lines = [];
    line = next;
  };
  for (const [index, one] of text.split(/\r?\n/).entries()) {
    if (!/^---(\s|$)/.test(one)) lines.push(one);
    else {
      end(index + 1);
      // Keeps the text after the marker on its line, because it belongs to the document, and line numbers must stay correct.
      lines.push(one.slice(3));
    }
  }
  end(0);
  return documents;
}

interface Place {
  readonly file: string;
  readonly document: number;
  readonly line: number;
}

const LIST = "List";

/** Reads a manifest, or each item of a `List`, such as the output of `kubectl get -o yaml`. */
function readValue(value: unknown, at: Place, lineOf: ReadDocument["lineOf"]): ReadDocument[] {
  const { kind, apiVersion, items } = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (kind !== LIST || apiVersion !== "v1") return [readManifest(value, at, lineOf)];
  if (!Array.isArray(items)) {
    const problem = { ...at, line: lineOf("items"), location: "items", message: "expected a list of objects" };
    return [{ document: at.document, line: at.line, problems: [problem], lineOf }];
  }
  return items.flatMap((item: unknown, i) => {
    const lineIn = (location: string) => lineOf(location === "" ? `items[${i}]` : `items[${i}].${location}`);
    return readValue(item, { ...at, line: lineIn("") }, lineIn);
  });
}

function knownOf(
  value: unknown,
  { document, line }: Place,
  lineOf: ReadDocument["lineOf"],
): Omit<ReadDocument, "problems"> {
  const head = identityIn(value);
  const { apiVersion } = (value ?? {}) as { readonly apiVersion?: unknown };
  return {
    document,
    line,
    lineOf,
    ...(head === undefined ? {} : { id: identityOf(head) }),
    ...(typeof apiVersion === "string" ? { apiVersion } : {}),
  };
}

/** Returns the error of a document that is not valid YAML. */
function readFaulty(
  value: unknown,
  error: NonNullable<Value["error"]>,
  at: Place,
  lineOf: ReadDocument["lineOf"],
): ReadDocument {
  const known = knownOf(value, at, lineOf);
  const place = known.id === undefined ? at : { ...at, object: known.id };
  const line = at.line + (error.line ?? 1) - 1;
  return { ...known, problems: [{ ...place, line, location: "yaml", message: error.message }] };
}

function readManifest(value: unknown, at: Place, lineOf: ReadDocument["lineOf"]): ReadDocument {
  const known = knownOf(value, at, lineOf);
  const place = known.id === undefined ? at : { ...at, object: known.id };
  const parsed = parseManifest(value);
  if ("problems" in parsed) {
    const problems = parsed.problems.map((problem) => ({ ...place, ...problem, line: lineOf(problem.location) }));
    return { ...known, problems };
  }
  const { kind, metadata } = parsed.manifest;
  const { name, namespace = DEFAULT_NAMESPACE, annotations = {} } = metadata;
  const desired = { kind, namespace, name, annotations, spec: (value as { spec: unknown }).spec };
  return { ...known, id: identityOf(desired), desired, problems: [] };
}

interface Value {
  readonly value?: unknown;
  readonly error?: { readonly message: string; readonly line?: number };
}

function toValue(document: Document.Parsed): Value {
  const [syntax] = document.errors;
  try {
    if (syntax === undefined) return { value: document.toJS() };
    const value = isMap(document.contents) ? headOf(document) : undefined;
    const line = syntax.linePos?.[0].line;
    return { value, error: { message: firstLine(syntax.message), ...(line === undefined ? {} : { line }) } };
  } catch (error) {
    // The document contains too many aliases, or an alias for an unknown anchor.
    return { error: { message: error instanceof Error ? firstLine(error.message) : "the document cannot be read" } };
  }
}

function headOf(document: Document.Parsed): unknown {
  const [name, namespace] = ["name", "namespace"].map((field) => document.getIn(["metadata", field]));
  return { kind: document.get("kind"), metadata: { name, namespace } };
}

/** Returns the identity even if the rest of the document is invalid, so that the last valid version of its object stays active. */
function identityIn(value: unknown): { kind: string; namespace: string; name: string } | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { kind, metadata } = value as { kind?: unknown; metadata?: unknown };
  if (typeof kind !== "string" || typeof metadata !== "object" || metadata === null) return undefined;
  const { name, namespace = DEFAULT_NAMESPACE } = metadata as { name?: unknown; namespace?: unknown };
  return typeof name === "string" && typeof namespace === "string" ? { kind, namespace, name } : undefined;
}

const firstLine = (text: string): string => text.split("\n")[0]?.replace(/:$/, "") ?? "";
