import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { DECIDING, testsOf } from "./files.ts";
import { readReport, type StrykerReport, toLine } from "./report.ts";

const ROOT = join(import.meta.dirname, "../..");
type Mutant = StrykerReport["files"][string]["mutants"][number];

const SOURCE = `if (end < 1) return "EXPIRED";\nthrow new Error(\n  "it is over",\n);`;
const aMutant = (values: Partial<Mutant>): Mutant => ({
  mutatorName: "EqualityOperator",
  replacement: "end <= 1",
  status: "Survived",
  location: { start: { line: 1, column: 5 }, end: { line: 1, column: 12 } },
  ...values,
});
const read = (...mutants: Mutant[]) => readReport({ files: { "core/a.ts": { source: SOURCE, mutants } } })[0];

describe("a report", () => {
  test("mutation report shows location and change of a survivor", () => {
    expect(read(aMutant({}))?.survivors.map(toLine)).toEqual(["core/a.ts:1:5  end < 1  →  end <= 1"]);
  });

  test("mutation report shortens multi-line changes and marks uncovered code", () => {
    const location = { start: { line: 2, column: 1 }, end: { line: 4, column: 3 } };
    const found = read(aMutant({ mutatorName: "BlockStatement", location, replacement: "", status: "NoCoverage" }));
    expect(found?.survivors.map(toLine)).toEqual([
      'core/a.ts:2:1  throw new Error( "it is over", );  →    (no test runs it)',
    ]);
  });

  test("mutation report counts killed and timed-out mutants, but no skipped mutants", () => {
    const statuses = ["Killed", "Timeout", "Survived", "Ignored", "CompileError"];
    expect(read(...statuses.map((status) => aMutant({ status })))).toMatchObject({ mutants: 3, killed: 2 });
  });

  test("mutation report ignores changed messages but not changed codes", () => {
    const code = { start: { line: 1, column: 21 }, end: { line: 1, column: 30 } };
    const sentence = { start: { line: 3, column: 3 }, end: { line: 3, column: 15 } };
    const found = read(
      aMutant({ mutatorName: "StringLiteral", replacement: '""', location: code }),
      aMutant({ mutatorName: "StringLiteral", replacement: '""', location: sentence }),
    );
    expect(found).toMatchObject({ mutants: 1, survivors: [{ before: '"EXPIRED"', after: '""' }] });
  });
});

test.each(DECIDING)("mutation target %s exists with its tests", (file) => {
  const tests = testsOf(file, ROOT);
  expect(tests).not.toEqual([]);
  for (const path of [file, ...tests]) expect(existsSync(join(ROOT, path)), path).toBe(true);
});
