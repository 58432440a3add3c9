import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkManifest } from "../core/manifests/check.ts";
import { API_VERSION } from "../core/manifests/index.ts";
import { type DocumentProblem, type ReadDocument, readDocuments } from "../operator/source/directory/documents.ts";
import { UsageError } from "./command.ts";

/* Manifests as commands read them: a file, or every .yaml and .yml file of a directory. */

/** Throws `UsageError` when there is nothing. */
export function manifestFiles(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw new UsageError(`there is nothing at ${resolve(path)}`);
  if (!stat.isDirectory()) return [path];
  return readdirSync(path)
    .filter((name) => /\.ya?ml$/.test(name))
    .sort()
    .map((name) => join(path, name));
}

/** Reads a file as the operator does, and also finds what the operator would notice only when it compiles the policy. */
export const readManifestFile = (file: string): ReadDocument[] =>
  readDocuments(file, readFileSync(file, "utf8")).map((read) =>
    read.desired === undefined
      ? read
      : { ...read, problems: [...read.problems, ...compileProblems(file, read.desired, read)] },
  );

function compileProblems(
  file: string,
  { kind, namespace, name, spec }: NonNullable<ReadDocument["desired"]>,
  { document, lineOf }: Pick<ReadDocument, "document" | "lineOf">,
): DocumentProblem[] {
  const object = `${kind} ${namespace}/${name}`;
  return checkManifest({ apiVersion: API_VERSION, kind, metadata: { name, namespace }, spec }).map((problem) => ({
    file,
    document,
    line: lineOf(problem.location),
    object,
    ...problem,
  }));
}

/** `orders.yaml:12: ApiKeyPolicy shop/orders: spec.rules[0]: …` */
export const sayProblem = ({ file, line, object = "manifest", location, message }: DocumentProblem): string =>
  `${file}:${line}: ${object}: ${location}: ${message}`;
