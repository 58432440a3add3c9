import type { Command } from "../command.ts";
import { flagsOf, LIST_PROFILES, nounsOf, PROGRAMS, type Values, valuesOf } from "./values.ts";

/** Returns the completion script for bash, which requires no other programs. */
export function bashCompletion(commands: readonly Command[]): string {
  const nouns = nounsOf(commands);
  return [
    "# Completion of postern for bash: source <(postern completion bash)",
    "_postern_verbs() {",
    ...cases(
      "$1",
      nouns.map(({ name, verbs }) => [name, echo(verbs.map((verb) => verb.name))]),
    ),
    "}",
    "_postern_options() {",
    ...cases(
      "$1",
      commands.map(({ name, options }) => [
        name,
        echo([...Object.keys(options), "help"].map((option) => `--${option}`)),
      ]),
    ),
    "}",
    "# What follows an option: words, or a kind of them.",
    "_postern_values() {",
    ...cases(
      "$1 $2",
      commands.flatMap((command) =>
        Object.entries(command.options).flatMap(([option, row]) =>
          flagsOf(option, row).map((flag): [string, string] => [
            `${command.name} ${flag}`,
            spoken(valuesOf(command, option, row)),
          ]),
        ),
      ),
    ),
    "}",
    `_postern() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD - 1]}"
  local command="\${COMP_WORDS[1]}" verbs values words="" IFS=$' \\t\\n'
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    words="${nouns.map(({ name }) => name).join(" ")}"
  else
    verbs="$(_postern_verbs "$command")"
    if [[ -n $verbs ]] && ((COMP_CWORD == 2)); then
      words="$verbs"
    else
      [[ -n $verbs ]] && command="$command \${COMP_WORDS[2]}"
      values="$(_postern_values "$command" "$before")"
      case "$values" in
        "" | none) words="$(_postern_options "$command")" ;;
        text) ;;
        file | folder)
          # bash 3 of macOS has no compopt; a name may have blanks.
          compopt -o filenames 2>/dev/null
          IFS=$'\\n'
          if [[ $values = file ]]; then COMPREPLY=($(compgen -f -- "$current")); else COMPREPLY=($(compgen -d -- "$current")); fi
          return
          ;;
        profile) words="$(${LIST_PROFILES})" ;;
        *) words="$values" ;;
      esac
    fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}`,
    `complete -F _postern ${PROGRAMS.join(" ")}`,
  ].join("\n");
}

/** Returns one shell `case` per pattern. Command and option names need no quoting, because they contain neither quotes nor shell syntax. */
const cases = (of: string, rows: ReadonlyArray<readonly [string, string]>): string[] => [
  `  case "${of}" in`,
  ...rows.map(([pattern, action]) => `    "${pattern}") ${action} ;;`),
  "  esac",
];

const echo = (words: readonly string[]): string => `echo "${words.join(" ")}"`;
const spoken = (values: Values): string => echo(values.kind === "words" ? values.words : [values.kind]);
