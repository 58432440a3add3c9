import { readFileSync } from "node:fs";
import { type Document, LineCounter, parseDocument } from "yaml";
import type * as z from "zod";
import { problemsOf } from "../core/manifests/check.ts";
import { lineFinder } from "../core/manifests/yaml-lines.ts";

/* Reads a YAML file and validates it against a schema. Each problem has its line number. */

export interface FileProblem {
  readonly file: string;
  /** Line number, starting at 1. */
  readonly line: number;
  /** Path such as `keys[0].name`; empty for a problem with the entire file. */
  readonly location: string;
  readonly message: string;
}

export interface CheckedYaml<T> {
  readonly value: T;
  /** Returns a problem that the schema cannot express, located at the line of `path`. */
  problemAt(path: readonly (string | number)[], message: string): FileProblem;
}

/** Error for an invalid file. The message has one line per problem. */
export class WrongFile extends Error {
  override name = "WrongFile";
  readonly problems: readonly FileProblem[];

  constructor(problems: readonly FileProblem[]) {
    super(problems.map(sayFileProblem).join("; "));
    this.problems = problems;
  }
}

/** Formats a problem as `fixtures.yaml:3: keys[0].name: is required`. */
export const sayFileProblem = ({ file, line, location, message }: FileProblem): string =>
  `${file}:${line}: ${location === "" ? "" : `${location}: `}${message}`;

const FILE_LENGTH_MAX = 4 * 1024 * 1024;

/** Reads and validates a YAML file. Throws `WrongFile`, and errors of the file system. */
export function readCheckedYaml<S extends z.ZodType>(file: string, schema: S): CheckedYaml<z.output<S>> {
  const text = readFileSync(file, "utf8");
  const fileError = (message: string, line = 1) => new WrongFile([{ file, line, location: "", message }]);
  if (text.length > FILE_LENGTH_MAX) throw fileError(`the file is larger than ${FILE_LENGTH_MAX} characters`);
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, logLevel: "error" });
  const [syntax] = document.errors;
  if (syntax !== undefined) throw fileError(syntax.message.split("\n")[0] ?? "is not YAML", syntax.linePos?.[0].line);

  const lineOf = lineFinder(document, lines);
  const parsed = schema.safeParse(contentOf(document, fileError));
  if (parsed.success) {
    const problemAt = (path: readonly (string | number)[], message: string): FileProblem => ({
      file,
      line: lineOf(path),
      location: locationOf(path),
      message,
    });
    return { value: parsed.data, problemAt };
  }
  throw new WrongFile(
    parsed.error.issues.flatMap((issue) =>
      problemsOf({ issues: [issue] }).map((problem) => ({ file, line: lineOf(issue.path), ...problem })),
    ),
  );
}

function contentOf(document: Document, whole: (message: string) => WrongFile): unknown {
  try {
    return document.toJS();
  } catch (error) {
    // The YAML parser throws for too many aliases, and for an alias of an unknown anchor.
    throw whole(error instanceof Error ? error.message : "the file cannot be read");
  }
}

const locationOf = (path: readonly (string | number)[]): string =>
  path.map((part, i) => (typeof part === "number" ? `[${part}]` : i === 0 ? part : `.${part}`)).join("");
