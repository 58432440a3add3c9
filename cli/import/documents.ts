import { readFileSync } from "node:fs";
import { LineCounter, parseAllDocuments } from "yaml";
import * as z from "zod";

/*
 * The files of other systems: YAML or JSON, one document or many, a list of Kubernetes, or a JSON object a line.
 */

export const FILE_BYTES_MAX = 20 * 1024 * 1024;

/** A file is not what it should be. The message names the file, and the place if there is one. */
export class WrongImport extends Error {
  override name = "WrongImport";
}

/** Returns the text of a file. Throws `WrongImport`, and the file system's errors. */
export function readText(file: string): string {
  const bytes = readFileSync(file);
  if (bytes.length > FILE_BYTES_MAX) {
    throw new WrongImport(`${file} is larger than ${FILE_BYTES_MAX / 1024 / 1024} MiB: split it`);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new WrongImport(`${file} is not UTF-8 text`);
  }
}

/**
 * Returns the objects in the text of a file. A scalar of YAML is the text as it is written, since a key such as 0123 is no number. Throws
 * `WrongImport`, with the file's name.
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
      // Too many aliases, or an alias of an unknown anchor.
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

/** The objects of a list, at any depth of lists; another value is one object. */
function items(value: unknown): unknown[] {
  if (Array.isArray(value)) return value.flatMap(items);
  const list = List.safeParse(value);
  return list.success ? list.data.items.flatMap(items) : [value];
}

/** Text that YAML or JSON may have as a number. Empty text is none. */
export const Text = z
  .union([z.string(), z.number(), z.null()])
  .transform((value) => (value === null || value === "" ? undefined : String(value)))
  .optional();

export const Texts = z
  .array(Text)
  .nullish()
  .transform((texts) => (texts ?? []).filter((text) => text !== undefined));

/** A list that may be missing or empty. */
export const listOf = <S extends z.ZodType>(item: S) =>
  z
    .array(item)
    .nullish()
    .transform((list) => list ?? []);

/** Reads an object by its schema. Throws `WrongImport` that says where it is wrong. */
export function readObject<S extends z.ZodType>(schema: S, value: unknown, what: string): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const place = issue === undefined || issue.path.length === 0 ? "" : `, at ${issue.path.join(".")}`;
  throw new WrongImport(`${what} cannot be read${place}: ${issue?.message ?? "it has another form"}`);
}
