import type { Command } from "../command.ts";
import { LIST_PROFILES, nounsOf, PROGRAMS, type Values, valuesOf } from "./values.ts";

/** Returns the completion script for fish, with summaries. */
export function fishCompletion(commands: readonly Command[]): string {
  const nouns = nounsOf(commands);
  return [
    "# Completion of postern for fish: postern completion fish | source",
    "function __postern_is # whether the words before the cursor begin with these",
    "  set -l words (commandline -opc)",
    "  set -l last (math (count $argv) + 1)",
    '  test (count $words) -ge $last; and test "$words[2..$last]" = "$argv"',
    "end",
    "function __postern_after # whether they are exactly these",
    "  set -l words (commandline -opc)",
    '  test (count $words) -eq (math (count $argv) + 1); and test "$words[2..-1]" = "$argv"',
    "end",
    "function __postern_first # whether there are none",
    "  test (count (commandline -opc)) -eq 1",
    "end",
    "function __postern_profiles",
    `  ${LIST_PROFILES}`,
    "end",
    ...PROGRAMS.map((program) => `complete -c ${program} -f`),
    ...nouns.flatMap(({ name, summary, verbs }) => [
      line("__postern_first", `-a ${name}`, summary),
      ...verbs.map((verb) => line(`__postern_after ${name}`, `-a ${verb.name}`, verb.summary)),
    ]),
    ...commands.flatMap((command) => {
      const when = `__postern_is ${command.name}`;
      return [
        ...Object.entries(command.options).map(([option, row]) => {
          const short = row.short === undefined ? "" : ` -s ${row.short}`;
          return line(when, `-l ${option}${short}${argumentOf(valuesOf(command, option, row))}`, row.help);
        }),
        line(when, "-l help", "show all options"),
      ];
    }),
  ].join("\n");
}

const line = (when: string, what: string, text: string): string =>
  PROGRAMS.map((program) => `complete -c ${program} -n ${quoted(when)} ${what} -d ${quoted(text)}`).join("\n");

function argumentOf(values: Values): string {
  if (values.kind === "none") return "";
  if (values.kind === "file") return " -r -F";
  if (values.kind === "folder") return " -x -a '(__fish_complete_directories)'";
  if (values.kind === "profile") return " -x -a '(__postern_profiles)'";
  return values.kind === "words" ? ` -x -a ${quoted(values.words.join(" "))}` : " -x";
}

/** In single quotes, fish interprets only backslashes and single quotes. */
const quoted = (text: string): string => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
