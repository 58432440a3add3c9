import { type Document, isMap, parseAllDocuments } from "yaml";
import { parseManifest } from "../../../core/manifests/check.ts";
import type { Kind } from "../../../core/manifests/index.ts";

/** Where an object of a manifest without a namespace lives. */
const DEFAULT_NAMESPACE = "default";
const FILE_LENGTH_MAX = 4 * 1024 * 1024;

/** What a good document says. */
export interface Desired {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec: unknown;
}

/** Something that is wrong with a document, in words for whoever edits the file. */
export interface DocumentProblem {
  readonly file: string;
  /** The document's place in its file, from 1. */
  readonly document: number;
  /** The line of the file, from 1, where the document begins or breaks. */
  readonly line: number;
  /** `Kind namespace/name`, when the document says that much. */
  readonly object?: string;
  readonly location: string;
  readonly message: string;
}

export interface ReadDocument {
  /** The document's place in its file, from 1, and the line on which it begins. */
  readonly document: number;
  readonly line: number;
  /** The identity, when it can be told. */
  readonly id?: string;
  readonly desired?: Desired;
  readonly problems: readonly DocumentProblem[];
}

/** The identity of an object within a source. */
export const identityOf = ({ kind, namespace, name }: { kind: string; namespace: string; name: string }): string =>
  `${kind} ${namespace}/${name}`;

/** Reads each document of a file by itself, so that a broken one disturbs no other. Empty documents do not count. */
export function readDocuments(file: string, text: string): ReadDocument[] {
  if (text.length > FILE_LENGTH_MAX) {
    const message = `the file is larger than ${FILE_LENGTH_MAX} characters`;
    const at = { document: 1, line: 1 };
    return [{ ...at, problems: [{ file, ...at, location: "file", message }] }];
  }
  return splitDocuments(text).flatMap(({ text: part, line }, index) => {
    // Its warnings go to the console; what is wrong is told by parseManifest, with a place.
    const [document] = parseAllDocuments(part, { logLevel: "error" });
    const isEmpty = document === undefined || (document.contents === null && document.errors.length === 0);
    return isEmpty ? [] : [readDocument(document, { file, document: index + 1, line })];
  });
}

/**
 * Cut before it is parsed: `---` at the beginning of a line always ends a document (YAML 1.2, 9.1.2), even where a bracket was
 * left open, which the parser alone would go on reading through all that follows. `line` counts from 1.
 */
function splitDocuments(text: string): Array<{ text: string; line: number }> {
  const parts: Array<{ text: string; line: number }> = [];
  let lines: string[] = [];
  let line = 1;
  const end = (next: number) => {
    // Directives and comments before the first marker are no document.
    if (lines.some((one) => /^[^%#\s]|^\s+[^#\s]/.test(one))) parts.push({ text: lines.join("\n"), line });
    lines = [];
    line = next;
  };
  for (const [index, one] of text.split(/\r?\n/).entries()) {
    if (!/^---(\s|$)/.test(one)) lines.push(one);
    else {
      end(index + 1);
      // What stands behind the marker belongs to the document, and the line keeps its number.
      lines.push(one.slice(3));
    }
  }
  end(0);
  return parts;
}

function readDocument(document: Document.Parsed, at: { file: string; document: number; line: number }): ReadDocument {
  const { value, error } = toValue(document);
  const { document: number, line } = at;
  const head = identityIn(value);
  const place = head === undefined ? at : { ...at, object: identityOf(head) };
  const known = { document: number, line, ...(head === undefined ? {} : { id: identityOf(head) }) };
  if (error !== undefined) {
    return {
      ...known,
      problems: [{ ...place, line: line + (error.line ?? 1) - 1, location: "yaml", message: error.message }],
    };
  }
  const parsed = parseManifest(value);
  if ("problems" in parsed) return { ...known, problems: parsed.problems.map((problem) => ({ ...place, ...problem })) };
  const { kind, metadata } = parsed.manifest;
  const { name, namespace = DEFAULT_NAMESPACE, annotations = {} } = metadata;
  const desired = { kind, namespace, name, annotations, spec: (value as { spec: unknown }).spec };
  return { ...known, id: identityOf(desired), desired, problems: [] };
}

function toValue(document: Document.Parsed): { value?: unknown; error?: { message: string; line?: number } } {
  const [syntax] = document.errors;
  try {
    const value: unknown = isMap(document.contents) || syntax === undefined ? document.toJS() : undefined;
    if (syntax === undefined) return { value };
    const line = syntax.linePos?.[0].line;
    return { value, error: { message: firstLine(syntax.message), ...(line === undefined ? {} : { line }) } };
  } catch (error) {
    // Too many aliases, or one of an anchor that is not there.
    return { error: { message: error instanceof Error ? firstLine(error.message) : "the document cannot be read" } };
  }
}

/** Also of a document that is broken elsewhere, so that what is known as its object can be left in force. */
function identityIn(value: unknown): { kind: string; namespace: string; name: string } | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { kind, metadata } = value as { kind?: unknown; metadata?: unknown };
  if (typeof kind !== "string" || typeof metadata !== "object" || metadata === null) return undefined;
  const { name, namespace = DEFAULT_NAMESPACE } = metadata as { name?: unknown; namespace?: unknown };
  return typeof name === "string" && typeof namespace === "string" ? { kind, namespace, name } : undefined;
}

const firstLine = (text: string): string => text.split("\n")[0]?.replace(/:$/, "") ?? "";
