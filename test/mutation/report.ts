import { z } from "zod";

const Place = z.object({ line: z.int(), column: z.int() });

/** The parts of Stryker's report that are read, as the mutation testing elements schema names them. */
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
  /** False when no test ran the code. */
  readonly isCovered: boolean;
}

export interface FileReport {
  readonly file: string;
  /** Mutants that were run, without static ones (computed at load time) and without sentences for people. */
  readonly mutants: number;
  readonly killed: number;
  readonly survivors: readonly Survivor[];
}

type Mutant = StrykerReport["files"][string]["mutants"][number];

/** Counts the killed mutants and lists the survivors, file by file. */
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

// A code such as "EXPIRED" is a decision; the wording of a message is not, and each would survive.
const isSentence = (mutator: string, before: string): boolean => mutator === "StringLiteral" && before.includes(" ");

/** Columns count from 1; the end is after the last character. */
function textAt(lines: readonly string[], { start, end }: Mutant["location"]): string {
  const chosen = lines.slice(start.line - 1, end.line);
  const last = chosen.length - 1;
  return chosen
    .map((line, i) => line.slice(i === 0 ? start.column - 1 : 0, i === last ? end.column - 1 : undefined))
    .join("\n");
}

const SHOWN = 100;

/** One line: the place, and the change that no test noticed. */
export function toLine({ file, line, column, before, after, isCovered }: Survivor): string {
  const short = (text: string) => {
    const flat = text.replace(/\s+/g, " ");
    return flat.length <= SHOWN ? flat : `${flat.slice(0, SHOWN)}…`;
  };
  return `${file}:${line}:${column}  ${short(before)}  →  ${short(after)}${isCovered ? "" : "  (no test runs it)"}`;
}
