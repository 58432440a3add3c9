import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { inspectManifest, type ManifestProblem } from "../core/manifests/check.ts";
import { API_VERSION } from "../core/manifests/index.ts";
import { type DocumentProblem, type ReadDocument, readDocuments } from "../operator/source/directory/documents.ts";
import { type Io, UsageError } from "./command.ts";

/* Reads manifests for commands: a file, standard input, or the files of a directory that `kubectl apply -f` reads. */

const INPUT_BYTES_MAX = 16 * 1024 * 1024;

export interface Manifests {
  /** Number of files. */
  readonly files: number;
  readonly documents: readonly (ReadDocument & {
    readonly file: string;
    readonly warnings: readonly DocumentProblem[];
  })[];
}

/**
 * Reads manifests as the operator does, and also reports policies that do not compile and duplicate objects. A path without a manifest is a
 * problem. Throws `UsageError` for a path that does not exist and for a directory without manifest files.
 */
export async function readManifests(paths: readonly string[], io: Pick<Io, "input">): Promise<Manifests> {
  let files = 0;
  const documents: Manifests["documents"][number][] = [];
  for (const path of paths) {
    const before = documents.length;
    for (const { file, text } of path === "-" ? [await readInput(io)] : filesOf(path)) {
      files += 1;
      for (const read of readDocuments(file, text)) {
        const { problems, warnings } =
          read.desired === undefined ? { problems: [], warnings: [] } : inspect(file, read.desired, read);
        documents.push({ ...read, file, warnings, problems: [...read.problems, ...problems] });
      }
    }
    if (documents.length > before) continue;
    const at = { file: path, document: 1, line: 1 };
    const problems = [{ ...at, location: "file", message: "contains no manifest" }];
    documents.push({ ...at, problems, warnings: [], lineOf: () => 1 });
  }
  return { files, documents: withDuplicates(documents) };
}

async function readInput({ input }: Pick<Io, "input">): Promise<{ file: string; text: string }> {
  if (input === undefined || input.isTerminal)
    throw new UsageError("-f - reads standard input: pipe manifests into it");
  return { file: "standard input", text: await input.read(INPUT_BYTES_MAX) };
}

function filesOf(path: string): { file: string; text: string }[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) throw new UsageError(`there is no file or directory ${resolve(path)}`);
  const files = stat.isDirectory()
    ? readdirSync(path)
        .filter((name) => /^[^.].*\.(?:ya?ml|json)$/.test(name))
        .sort()
        .map((name) => join(path, name))
    : [path];
  if (files.length === 0) throw new UsageError(`${path} has no .yaml, .yml or .json file`);
  return files.map((file) => ({ file, text: readFileSync(file, "utf8") }));
}

/** Adds a problem to each document that defines an object a second time. */
function withDuplicates(documents: Manifests["documents"]): Manifests["documents"] {
  const seen = new Map<string, string>();
  return documents.map((read) => {
    const { id, file, document, lineOf, line } = read;
    if (id === undefined) return read;
    const first = seen.get(id);
    if (first === undefined) {
      seen.set(id, `${file}:${line}`);
      return read;
    }
    const message = `is already defined at ${first}; remove or rename one of them`;
    const location = "metadata.name";
    const problem = { file, document, line: lineOf(location), object: id, location, message };
    return { ...read, problems: [...read.problems, problem] };
  });
}

function inspect(
  file: string,
  { kind, namespace, name, spec }: NonNullable<ReadDocument["desired"]>,
  { document, lineOf }: Pick<ReadDocument, "document" | "lineOf">,
): Record<"problems" | "warnings", DocumentProblem[]> {
  const object = `${kind} ${namespace}/${name}`;
  const { problems, warnings } = inspectManifest({
    apiVersion: API_VERSION,
    kind,
    metadata: { name, namespace },
    spec,
  });
  const locate = (problem: ManifestProblem) => ({ file, document, line: lineOf(problem.location), object, ...problem });
  return { problems: problems.map(locate), warnings: warnings.map(locate) };
}

/** Formats a problem as `orders.yaml:12: ApiKeyPolicy shop/orders: spec.rules[0]: …`. */
export const sayProblem = ({ file, line, object = "manifest", location, message }: DocumentProblem): string =>
  `${file}:${line}: ${object}: ${location}: ${message}`;
