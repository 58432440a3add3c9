import { defineCommand } from "../command.ts";
import { printable, printableJson } from "../fields.ts";
import { readManifests, sayProblem } from "../manifests.ts";
import { json, manifestPaths, strict } from "../options.ts";
import { counted } from "../values.ts";

export const validate = defineCommand({
  name: "validate",
  description:
    "Runs the offline checks of `postern apply`. Reads files, standard input (-f -), and all .yaml, .yml and .json files of a directory. A file may have several documents or a List. Exit code 1 for a problem: an invalid manifest, a name that is defined twice, a reference that another manifest does not allow, or no manifest.",
  options: {
    file: manifestPaths,
    strict,
    json,
  },
  response:
    '{"files","problems":[{"file","document","line","object","location","message"}],"warnings":[…],"notes":[…]}',
  run: async (options, io) => {
    const { files, problems, warnings, notes } = await readManifests(options.file, io, options);
    if (options.json) io.out(printableJson({ files, problems, warnings, notes }));
    else {
      for (const note of notes) io.note(printable(sayProblem(note)));
      for (const problem of problems) io.out(printable(sayProblem(problem)));
      for (const warning of warnings) io.out(printable(`warning: ${sayProblem(warning)}`));
      const warned = warnings.length === 0 ? "" : `, ${counted(warnings.length, "warning")}`;
      io.out(`${counted(files, "file")}, ${counted(problems.length, "problem")}${warned}`);
    }
    return problems.length === 0 ? 0 : 1;
  },
});
