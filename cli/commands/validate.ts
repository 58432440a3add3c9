import { defineCommand } from "../command.ts";
import { printable, printableJson } from "../fields.ts";
import { manifestFiles, readManifestFile, sayProblem } from "../manifests.ts";
import { json, manifestPaths } from "../options.ts";
import { counted } from "../values.ts";

export const validate = defineCommand({
  name: "validate",
  summary: "check manifests without applying them",
  description: "Reads each file, and every .yaml and .yml file of a directory. Exit code 1 when something is wrong.",
  options: {
    file: manifestPaths,
    json,
  },
  run: async (options, io) => {
    const files = options.file.flatMap(manifestFiles);
    const findings = files.flatMap((file) => readManifestFile(file)).flatMap(({ problems }) => problems);
    if (options.json) {
      io.out(printableJson({ files: files.length, problems: findings }));
    } else {
      for (const finding of findings) io.out(printable(sayProblem(finding)));
      io.out(`${counted(files.length, "file")}, ${counted(findings.length, "problem")}`);
    }
    return findings.length === 0 ? 0 : 1;
  },
});
