import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { COMPONENT_IMPORTS } from "../import-rules.ts";
import { findCitations } from "./citations.ts";
import { readReference } from "./reference.ts";

/*
 * Comments cite the API reference by its sections. Every section that is cited is there, and no text cites a document that a
 * reader of this repository does not have.
 */

const ROOT = resolve(import.meta.dirname, "../..");
/** The documents that may be cited. One more is one more entry. */
const REFERENCES = new Map(["api-v1.md", "api-v2.md"].map((name) => [name, readReference(name)]));

const FOLDERS = [...Object.keys(COMPONENT_IMPORTS), "charts", "crds", "docs", "examples", "scripts", "test"];
const SOURCE = /\.(?:ts|sql|lua|md|ya?ml|html|css|toml)$/;
/** These two hold examples of what is not to be written. */
const EXAMPLES: ReadonlySet<string> = new Set(["test/docs/citations.test.ts", "test/docs/citations.ts"]);

const files = [
  ...readdirSync(ROOT).filter((name) => name.endsWith(".md")),
  ...FOLDERS.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
  ),
].filter((name) => SOURCE.test(name) && !name.includes("node_modules/") && !EXAMPLES.has(name));

const cited = files.flatMap((file) => {
  // Within a reference a section without a document is one of its own.
  const own = [...REFERENCES.keys()].find((name) => file === `docs/reference/${name}`);
  const citations = findCitations(readFileSync(join(ROOT, file), "utf8"));
  return citations.map((one) => ({ file, ...one, document: one.document ?? (one.section === "" ? undefined : own) }));
});

const isThere = ({ document, section }: { document: string | undefined; section: string }): boolean =>
  document !== undefined && REFERENCES.get(document)?.sections.includes(section) === true;

test("every section cited in the source exists in its document", () => {
  expect(cited.length).toBeGreaterThan(60);
  expect(cited.filter((one) => !isThere(one)).map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
});

describe("a citation", () => {
  test.each([
    { text: "(api-v2.md section 9.1)", found: ["api-v2.md 9.1"] },
    { text: "api-v2.md sections 6.2 and 17", found: ["api-v2.md 6.2", "api-v2.md 17"] },
    { text: "docs/reference/api-v2.md, section 4", found: ["api-v2.md 4"] },
    { text: "`docs/reference/api-v2.md`, section 4", found: ["api-v2.md 4"] },
    { text: "[api-v2.md](docs/reference/api-v2.md), section 4", found: ["api-v2.md 4"] },
    { text: " * as in api-v2.md\n   * section 9.3", found: ["api-v2.md 9.3"] },
    { text: "// RFC 9112\n// section 3.2.2", found: [] },
    { text: "RFC 9110, section 11.6.1", found: [] },
    { text: "as RFC 9110 (7.8) allows", found: [] },
    { text: "this section has 9 lines", found: [] },
  ])("citation is found in $text", ({ text, found }) => {
    expect(findCitations(text).map(({ document, section }) => `${document} ${section}`)).toEqual(found);
  });

  test.each([
    "the order of section 9.3",
    "api-v2.md section 9.2, and section 10 of another",
    "(api/v2 section 12.2)",
    "the best pattern (api/v2 9.3)",
    "not guarded (24.1)",
    "The table of section 5 of the design",
    "refused with 400 (the design)",
    "`A(x)` of the reference",
    "api-v2.md section 99",
    "api-v1.md section 1.9.9",
  ])("citation of a missing section is detected: %s", (text) => {
    expect(findCitations(text).filter((one) => !isThere(one))).not.toEqual([]);
  });
});
