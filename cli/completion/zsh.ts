import type { Command } from "../command.ts";
import { flagsOf, LIST_PROFILES, nounsOf, PROGRAMS, type Values, valuesOf } from "./values.ts";

/** Returns the completion script for zsh, with summaries. */
export function zshCompletion(commands: readonly Command[]): string {
  const nouns = nounsOf(commands);
  return [
    `#compdef ${PROGRAMS.join(" ")}`,
    "# Completion of postern for zsh: source <(postern completion zsh), after compinit",
    "_postern() {",
    "  local -a found",
    '  local command="$words[2]"',
    "  if (( CURRENT == 2 )); then",
    `    found=(${nouns.map(({ name, summary }) => described(name, summary)).join(" ")})`,
    "    _describe -t commands command found",
    "    return",
    "  fi",
    '  case "$words[2]" in',
    ...nouns
      .filter(({ verbs }) => verbs.length > 0)
      .map(({ name, verbs }) => {
        const all = verbs.map((verb) => described(verb.name, verb.summary)).join(" ");
        return `    ${name}) found=(${all}); command="${name} \${words[3]}" ;;`;
      }),
    "  esac",
    "  if (( CURRENT == 3 && $#found )); then",
    "    _describe -t commands command found",
    "    return",
    "  fi",
    "  found=()",
    '  case "$command $words[CURRENT-1]" in',
    ...commands.flatMap((command) =>
      Object.entries(command.options).flatMap(([option, row]) => {
        const action = actionOf(valuesOf(command, option, row), row.placeholder ?? "VALUE");
        const patterns = flagsOf(option, row).map((flag) => quoted(`${command.name} ${flag}`));
        return action === undefined ? [] : [`    ${patterns.join("|")}) ${action}; return ;;`];
      }),
    ),
    "  esac",
    '  case "$command" in',
    ...commands.map(({ name, options }) => {
      const all = Object.entries(options).map(([option, row]) => described(`--${option}`, row.help));
      return `    ${quoted(name)}) found=(${[...all, described("--help", "show all options")].join(" ")}) ;;`;
    }),
    "  esac",
    "  _describe -o -t options option found",
    "}",
    // zsh runs a file in $fpath as the completion function itself. If the script is sourced instead, it registers the function for the
    // programs.
    `if [[ "$funcstack[1]" = _postern ]]; then _postern "$@"; else compdef _postern ${PROGRAMS.join(" ")}; fi`,
  ].join("\n");
}

function actionOf(values: Values, placeholder: string): string | undefined {
  if (values.kind === "none") return undefined;
  if (values.kind === "file") return "_files";
  if (values.kind === "folder") return "_files -/";
  if (values.kind === "text") return `_message ${quoted(placeholder)}`;
  const words = values.kind === "words" ? values.words.join(" ") : `\${(f)"$(${LIST_PROFILES})"}`;
  return `found=(${words}); _describe -t values value found`;
}

/** Returns `'name:summary'` with colons in the name escaped. */
const described = (name: string, text: string): string => quoted(`${name.replaceAll(":", "\\:")}:${text}`);

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
