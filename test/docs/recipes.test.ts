import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestDatabase } from "../harness/postgres.ts";
import { addACommand } from "./recipes/add-a-command.ts";
import { addAManifestField } from "./recipes/add-a-manifest-field.ts";
import { addAMigration } from "./recipes/add-a-migration.ts";
import { addAProcedure } from "./recipes/add-a-procedure.ts";
import { Copy, type Omission, type Part, type Recipe, type Run, stepsOf, type TestRun } from "./recipes/recipe.ts";

/*
 * The recipes of CONTRIBUTING.md, followed on one copy of the working tree: the result is complete, breaks nothing, and what is
 * left out is noticed by a test. A change that makes a recipe untrue fails here; if a recipe is incomplete, add to both.
 */

const RECIPES: readonly Recipe[] = [addAProcedure, addAMigration, addAManifestField, addACommand];

const ROOT = resolve(import.meta.dirname, "../..");
const contributing = readFileSync(join(ROOT, "CONTRIBUTING.md"), "utf8");
const RUN_MS = 300_000;

const unique = (all: readonly string[]): string[] => [...new Set(all)];
const lists = unique(RECIPES.flatMap((recipe) => recipe.lists));
const about = {
  words: unique(RECIPES.flatMap((recipe) => recipe.about.words)),
  files: unique(RECIPES.flatMap((recipe) => recipe.about.files)),
};

describe.each(RECIPES)("$heading", ({ heading, parts, notTaken }) => {
  const steps = stepsOf(contributing, heading);

  test("recipe test performs each step of a recipe, or states why it skips the step", () => {
    const taken = new Set([...parts.map(({ step }) => step), ...Object.keys(notTaken).map(Number)]);
    expect([...taken].sort((a, b) => a - b)).toEqual([...steps.keys()]);
  });

  test.each(parts.map((part) => ({ file: part.file, part })))("recipe step names $file", ({ part }) => {
    expect(isNamed(part, steps.get(part.step) ?? "")).toBe(true);
  });
});

/** By its path, or by the last part of it where the step has named the folder; a placeholder such as `<noun>` stands for any name. */
function isNamed({ file }: Part, step: string): boolean {
  const named = [...step.matchAll(/`([^`\s]+)`/g)].map(([, code = ""]) => code);
  return named.some((code) => {
    const pattern = code.replace(/[.+]/g, "\\$&").replace(/<\w+>|NNNN[\w-]*/g, "[\\w-]+");
    return new RegExp(`^(?:${pattern}|.*/${pattern}|${pattern.replace(/\/$/, "")}/.+)$`).test(file);
  });
}

let copy: Copy;
beforeAll(async () => {
  // So that the template of databases is made by the migrations that are here, and not by those of the copy.
  await (await createTestDatabase()).drop();
  copy = await Copy.make();
});
afterAll(() => copy.remove());

describe("followed on a copy of the working tree", () => {
  let types: Run;
  let form: Run;
  let runs: readonly TestRun[];

  beforeAll(async () => {
    const parts = RECIPES.flatMap((recipe) => recipe.parts);
    for (const part of parts) await copy.add(part);
    form = await copy.run(copy.program("biome"), ["check", "--write", ...new Set(parts.map(({ file }) => file))]);
    const generated = await copy.run(process.execPath, ["scripts/generate.ts"]);
    expect(generated.code, generated.output).toBe(0);
    [types, ...runs] = await Promise.all([
      // Beside two test runs, threads of its own only cost: twice the CPU for the same answer.
      copy.run(copy.program("tsc"), ["-p", ".", "--singleThreaded"]),
      copy.test(lists),
      copy.test(about.files, about.words),
    ]);
  }, RUN_MS);

  test("files created by the recipes pass the type check and the formatter", () => {
    expect(types.output).toBe("");
    expect(form.code, form.output).toBe(0);
  });

  test("files created by the recipes break no test", () => {
    expect(runs.flatMap(({ failures }) => [...failures])).toEqual([]);
  });

  test.each(about.files)("file %s created by a recipe has a test", (file) => {
    expect(runs.some(({ passed }) => passed.has(file))).toBe(true);
  });

  describe("omissions are detected", () => {
    const omissions = RECIPES.flatMap((recipe) => recipe.omissions.map((omission) => ({ recipe, omission })));
    const [alone, together] = [true, undefined].map((flag) =>
      omissions.filter(({ omission }) => omission.alone === flag),
    );
    let noticed: readonly TestRun[];

    beforeAll(async () => {
      for (const { omission } of together ?? []) await omission.leaveOut(copy);
      const files = unique((together ?? []).map(({ omission }) => omission.noticedBy.file));
      noticed = await Promise.all([
        copy.test(files.filter((file) => lists.includes(file))),
        copy.test(
          files.filter((file) => about.files.includes(file)),
          about.words,
        ),
      ]);
    }, RUN_MS);

    const isNoticed = ({ noticedBy }: Omission, tried: readonly TestRun[]): void => {
      const { file, says } = noticedBy;
      const run = tried.find(({ failures }) => failures.has(file));
      expect(run?.output ?? `no test of ${file} failed`).toMatch(says);
    };

    test.each(together ?? [])(
      "omitted recipe step is detected among other omissions: $recipe.heading: $omission.what",
      ({ omission }) => isNoticed(omission, noticed),
    );

    test.each(alone ?? [])(
      "single omitted recipe step is detected: $recipe.heading: $omission.what",
      async ({ recipe, omission }) => {
        await omission.leaveOut(copy);
        isNoticed(omission, [await copy.test([omission.noticedBy.file], recipe.about.words)]);
      },
      RUN_MS,
    );
  });
});
