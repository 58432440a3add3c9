import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";

/* What a page of docs/ tells its reader to write down and to run, for tests that follow it as written. */

const DOCS = resolve(import.meta.dirname, "../../docs");

export interface Block {
  readonly language: string;
  /** The file that it is: from its first line, `# policy.yaml`, or of JSON, which has no comments, beside the language. */
  readonly file: string | undefined;
  /** Without the indentation of the block. */
  readonly text: string;
}

export interface Step {
  readonly line: string;
  /** What the page shows below it. */
  readonly printed: string | undefined;
}

/** The blocks of a page, in its order; its name is that in docs/. */
export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(DOCS, page), "utf8");
  const blocks = text.matchAll(/^( *)```(\w+)(?: ([\w-]+\.\w+))?\n(.*?)^ *```/gms);
  return [...blocks].map(([, indent = "", language = "", named, inner = ""]) => {
    const lines = inner.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    return { language, file: named ?? /^# ([\w-]+\.\w+)\n/.exec(lines)?.[1], text: lines };
  });
}

/** The lines of the blocks for a shell; a line that is broken by `\` is one. */
export const stepsOf = (blocks: readonly Block[]): Step[] =>
  blocks.flatMap(({ language, text }, i) => {
    if (language !== "sh") return [];
    const lines = text
      .replaceAll(/\\\n\s*/g, "")
      .trim()
      .split("\n");
    const next = blocks[i + 1];
    const printed = next?.language === "text" ? next.text : undefined;
    return lines.map((line, at) => ({ line, printed: at === lines.length - 1 ? printed : undefined }));
  });

/** The words of a command; those in single quotes are one. */
export const wordsOf = (line: string): string[] =>
  [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, bare = ""]) => quoted ?? bare);
