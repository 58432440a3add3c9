import { z } from "zod";

const Place = z.object({ line: z.int(), column: z.int() });

/** What is read of Stryker's report, as the mutation testing elements schema names it. */
export const StrykerReport = z.object({
  files: z.record(
    z.string(),
    z.object({
      source: z.string(),
      mutants: z.array(
        z.object({
          mutatorName: z.string(),
          replacement: z.string().optional(),
          status: z.string(),
          location: z.object({ start: Place, end: Place }),
        }),
      ),
    }),
  ),
});
export type StrykerReport = z.infer<typeof StrykerReport>;

export interface Survivor {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  readonly mutator: string;
  readonly before: string;
  readonly after: string;
  /** False when no test even ran the place. */
  readonly isCovered: boolean;
}

export interface FileReport {
  readonly file: string;
  /** Those that were run: static ones (made once when a module loads) and sentences for people are left out. */
  readonly mutants: number;
  readonly killed: number;
  readonly survivors: readonly Survivor[];
}

type Mutant = StrykerReport["files"][string]["mutants"][number];

/** Counts what was killed and tells what survived, file by file. */
export function readReport({ files }: StrykerReport): FileReport[] {
  return Object.entries(files).map(([file, { source, mutants }]) => {
    const lines = source.split("\n");
    const judged = mutants
      .map((mutant) => ({ ...mutant, before: textAt(lines, mutant.location) }))
      .filter(({ status, mutatorName, before }) => WAS_RUN.has(status) && !isSentence(mutatorName, before));
    const survivors = judged
      .filter(({ status }) => LIVES.has(status))
      .map(({ status, mutatorName, before, replacement = "", location: { start } }) => ({
        file,
        line: start.line,
        column: start.column,
        mutator: mutatorName,
        before,
        after: replacement,
        isCovered: status === "Survived",
      }));
    return { file, mutants: judged.length, killed: judged.length - survivors.length, survivors };
  });
}

const LIVES = new Set(["Survived", "NoCoverage"]);
const WAS_RUN = new Set(["Killed", "Timeout", ...LIVES]);

// A code such as "EXPIRED" decides; the wording of a message does not, and each would be a survivor.
const isSentence = (mutator: string, before: string): boolean => mutator === "StringLiteral" && before.includes(" ");

/** Columns count from 1, and the end is the place behind the last character. */
function textAt(lines: readonly string[], { start, end }: Mutant["location"]): string {
  const chosen = lines.slice(start.line - 1, end.line);
  const last = chosen.length - 1;
  return chosen
    .map((line, i) => line.slice(i === 0 ? start.column - 1 : 0, i === last ? end.column - 1 : undefined))
    .join("\n");
}

const SHOWN = 100;

/** One line: where, and what could be changed without a test failing. */
export function toLine({ file, line, column, before, after, isCovered }: Survivor): string {
  const short = (text: string) => {
    const flat = text.replace(/\s+/g, " ");
    return flat.length <= SHOWN ? flat : `${flat.slice(0, SHOWN)}…`;
  };
  return `${file}:${line}:${column}  ${short(before)}  →  ${short(after)}${isCovered ? "" : "  (no test runs it)"}`;
}
