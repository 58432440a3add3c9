import { defineCommand } from "../command.ts";
import { printable, printableJson } from "../fields.ts";
import { readManifests, sayProblem } from "../manifests.ts";
import { json, manifestPaths } from "../options.ts";
import { counted } from "../values.ts";

export const validate = defineCommand({
  name: "validate",
  description:
    "Reads files, standard input (-f -), and all .yaml, .yml and .json files of a directory. Exit code 1 for an invalid manifest, a duplicate object, or no manifest. Warnings about rules of a policy do not change the exit code.",
  options: {
    file: manifestPaths,
    json,
  },
  response: '{"files","problems":[{"file","document","line","object","location","message"}],"warnings":[…]}',
  run: async (options, io) => {
    const { files, documents } = await readManifests(options.file, io);
    const findings = documents.flatMap(({ problems }) => problems);
    const warnings = documents.flatMap((document) => document.warnings);
    if (options.json) {
      io.out(printableJson({ files, problems: findings, warnings }));
    } else {
      for (const finding of findings) io.out(printable(sayProblem(finding)));
      for (const warning of warnings) io.out(printable(`warning: ${sayProblem(warning)}`));
      const warned = warnings.length === 0 ? "" : `, ${counted(warnings.length, "warning")}`;
      io.out(`${counted(files, "file")}, ${counted(findings.length, "problem")}${warned}`);
    }
    return findings.length === 0 ? 0 : 1;
  },
});
