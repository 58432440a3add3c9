import { readFileSync } from "node:fs";
import { LineCounter, parseAllDocuments } from "yaml";
import * as z from "zod";

/* Readers for the export files of other systems: YAML or JSON with one or more documents, a Kubernetes list, or JSON Lines. */

export const FILE_BYTES_MAX = 20 * 1024 * 1024;

/** Error for an invalid file. The message names the file, and the position if known. */
export class WrongImport extends Error {
  override name = "WrongImport";
}

/** Returns the text of a file. Throws `WrongImport`, and errors of the file system. */
export function readText(file: string): string {
  const bytes = readFileSync(file);
  if (bytes.length > FILE_BYTES_MAX) {
    throw new WrongImport(`${file} is larger than ${FILE_BYTES_MAX / 1024 / 1024} MiB; split the file`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new WrongImport(`${file} is not UTF-8 text`);
  }
}

/**
 * Parses the text of a file and returns its objects. YAML scalars stay text, because a key such as 0123 is not a number. Throws
 * `WrongImport` with the file name.
 */
export const readDocuments = (text: string, name: string): unknown[] => parseDocuments(text, name).flatMap(items);

function parseDocuments(text: string, name: string): unknown[] {
  if (/^\s*[[{]/.test(text)) {
    const parsed = parseJson(text) ?? parseJsonLines(text);
    if (parsed !== undefined) return parsed;
  }
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, { schema: "failsafe", lineCounter: lines, logLevel: "error" });
  return [...documents].map((document) => {
    const [fault] = document.errors;
    if (fault !== undefined) {
      const line = fault.linePos?.[0].line;
      throw new WrongImport(`${name}${line === undefined ? "" : `:${line}`}: ${fault.message.split("\n")[0]}`);
    }
    try {
      return document.toJS() as unknown;
    } catch (error) {
      // The YAML parser throws for too many aliases, and for an alias of an unknown anchor.
      throw new WrongImport(`${name}: ${error instanceof Error ? error.message : "cannot be read"}`);
    }
  });
}

function parseJson(text: string): unknown[] | undefined {
  try {
    return [JSON.parse(text)];
  } catch {
    return undefined;
  }
}

function parseJsonLines(text: string): unknown[] | undefined {
  try {
    return text
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line) => JSON.parse(line) as unknown);
  } catch {
    return undefined;
  }
}

const List = z.looseObject({ kind: z.string().endsWith("List"), items: z.array(z.unknown()) });

/** Returns the objects of lists nested at any depth. A value that is not a list counts as one object. */
function items(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(items);
  const list = List.safeParse(value);
  return list.success ? list.data.items.flatMap(items) : [value];
}

/** Schema of text that the YAML or JSON may write as a number. Empty text counts as missing. */
export const Text = z
  .union([z.string(), z.number(), z.null()])
  .transform((value) => (value === null || value === "" ? undefined : String(value)))
  .optional();

export const Texts = z
  .array(Text)
  .nullish()
  .transform((texts) => (texts ?? []).filter((text) => text !== undefined));

/** Schema of a list that may be missing or empty. */
export const listOf = <S extends z.ZodType>(item: S) =>
  z
    .array(item)
    .nullish()
    .transform((list) => list ?? []);

/** Validates an object by its schema. Throws `WrongImport` with the path of the problem. */
export function readObject<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "" : `, at ${issue.path.join(".")}`;
  throw new WrongImport(`${what} cannot be read${place}: ${issue?.message ?? "its structure is not supported"}`);
}
