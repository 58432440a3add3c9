import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/* An API reference, as the tests read it: numbered sections, and the tables in them. */

const FOLDER = resolve(import.meta.dirname, "../../docs/reference");
const HEADING = /^#{2,3} (\d+(?:\.\d+)?)\.? .*$/gm;

export interface Reference {
  /** Numbers of all sections, in the order of the document. */
  readonly sections: readonly string[];
  /** Returns the text of a section without its subsections. Throws when there is no such section. */
  section(number: string): string;
  /** Rows of the tables of a section that have all of these columns, each a list of cells. Throws when there are none. */
  rows(number: string, ...columns: string[]): string[][];
}

/** Reads `docs/reference/<name>`. */
export function readReference(name: string): Reference {
  const text = readFileSync(join(FOLDER, name), "utf8");
  const headings = [...text.matchAll(HEADING)];
  const bodies = new Map(
    headings.map(({ 0: line, 1: number = "", index }, i) => [
      number,
      text.slice(index + line.length, headings[i + 1]?.index ?? text.length),
    ]),
  );
  const section = (number: string): string => {
    const body = bodies.get(number);
    if (body === undefined) throw new Error(`${name} has no section ${number}`);
    return body;
  };
  return {
    sections: headings.map(({ 1: number = "" }) => number),
    section,
    rows(number, ...columns) {
      const rows = rowsOf(section(number), columns);
      if (rows.length === 0) throw new Error(`section ${number} of ${name} has no table of ${columns.join(", ")}`);
      return rows;
    },
  };
}

/** The texts in backquotes. */
export const codesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

const rowsOf = (text: string, columns: readonly string[]): string[][] =>
  tablesOf(text)
    .filter(([header = []]) => columns.every((name) => header.includes(name)))
    .flatMap(([, , ...rest]) => rest);

/** Each table as its lines, each line as its cells. */
const tablesOf = (text: string): string[][][] =>
  (text.match(/(?:^\|.*\|\n?)+/gm) ?? []).map((table) =>
    table
      .trim()
      .split("\n")
      .map((line) =>
        line
          .slice(1, -1)
          .split("|")
          .map((cell) => cell.trim()),
      ),
  );
