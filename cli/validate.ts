import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import { checkManifest } from "../core/manifests/check.ts";
import { defineCommand, UsageError } from "./command.ts";
import { json } from "./options.ts";

interface Finding {
  readonly file: string;
  /** The document's place in its file, from 1. */
  readonly document: number;
  readonly location: string;
  readonly message: string;
}

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
      for (const { file, document, location, message } of findings) {
        io.out(`${file}#${document}: ${location}: ${message}`);
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

function checkFile(file: string): Finding[] {
  const documents = parseAllDocuments(readFileSync(file, "utf8"));
  return [...documents].flatMap((document, index) => {
    const at = { file, document: index + 1 };
    const syntax = document.errors[0];
    if (syntax !== undefined)
      return [{ ...at, location: `line ${syntax.linePos?.[0].line ?? 1}`, message: syntax.message }];
    const value: unknown = document.toJS();
    if (value === null) return [];
    return checkManifest(value).map((problem) => ({ ...at, ...problem }));
  });
}
