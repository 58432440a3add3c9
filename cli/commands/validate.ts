import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { checkManifest } from "../../core/manifests/check.ts";
import { API_VERSION } from "../../core/manifests/index.ts";
import { type DocumentProblem, type ReadDocument, readDocuments } from "../../operator/source/directory/documents.ts";
import { defineCommand, UsageError } from "../command.ts";
import { json } from "../options.ts";

export const validate = defineCommand({
  name: "validate",
  summary: "check manifests without applying them",
  description: "Reads a file or every .yaml and .yml file of a directory. Exit code 1 when something is wrong.",
  options: {
    file: { type: "string", short: "f", placeholder: "PATH", help: "a manifest file or a directory", required: true },
    json,
  },
  run: async (options, io) => {
    const files = manifestFiles(options.file);
    const findings = files.flatMap((file) => checkFile(file));
    if (options.json) {
      io.out(JSON.stringify({ files: files.length, problems: findings }));
    } else {
      for (const { file, line, object = "manifest", location, message } of findings) {
        io.out(`${file}:${line}: ${object}: ${location}: ${message}`);
      }
      io.out(`${files.length} files, ${findings.length} problems`);
    }
    return findings.length === 0 ? 0 : 1;
  },
});

function manifestFiles(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw new UsageError(`there is nothing at ${path}`);
  if (!stat.isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .map((name) => join(path, name));
}

/** Checks a file as the operator reads it, and also what the operator would notice only when it compiles the policy. */
function checkFile(file: string): DocumentProblem[] {
  return readDocuments(file, readFileSync(file, "utf8")).flatMap(({ desired, problems, ...at }) =>
    desired === undefined ? problems : [...problems, ...compileProblems(file, desired, at)],
  );
}

function compileProblems(
  file: string,
  { kind, namespace, name, spec }: NonNullable<ReadDocument["desired"]>,
  { document, line }: Pick<ReadDocument, "document" | "line">,
): DocumentProblem[] {
  const object = `${kind} ${namespace}/${name}`;
  return checkManifest({ apiVersion: API_VERSION, kind, metadata: { name, namespace }, spec }).map((problem) => ({
    file,
    document,
    line,
    object,
    ...problem,
  }));
}
