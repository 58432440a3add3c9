import { describe, expect, test } from "vitest";
import { defineCommand, helpText, isGiven, parseOptions, UsageError } from "./command.ts";

const command = defineCommand({
  name: "try",
  summary: "show how options are read",
  options: {
    file: { type: "string", short: "f", placeholder: "PATH", help: "what to read", required: true, env: "TRY_FILE" },
    depth: { type: "string", help: "how deep", default: "3" },
    json: { type: "boolean", help: "as JSON" },
    word: { type: "string", help: "a word", env: "TRY_WORD", repeats: true },
    colors: { type: "string", help: "colors", alias: "color", repeats: true, separates: true },
  },
  response: '{"file","depth"}',
  run: async () => 0,
});

describe("options", () => {
  test("option value comes from the arguments, otherwise from the environment, otherwise from the default", () => {
    expect(parseOptions(command, ["-f", "a"], { TRY_FILE: "b" })).toEqual({
      file: "a",
      depth: "3",
      json: false,
      word: [],
      colors: [],
    });
    expect(parseOptions(command, ["--json"], { TRY_FILE: "b" })).toMatchObject({
      file: "b",
      depth: "3",
      json: true,
    });
  });

  test("option values from arguments and from the environment are distinguished, even if equal", () => {
    expect(isGiven(parseOptions(command, ["-f", "a"], { TRY_FILE: "a" }), "file")).toBe(true);
    expect(isGiven(parseOptions(command, [], { TRY_FILE: "a" }), "file")).toBe(false);
  });

  test("repeatable option keeps all values in order, or the single value of its environment variable", () => {
    const wordsOf = (args: string[], env = {}) => parseOptions(command, ["-f", "a", ...args], env).word;
    expect(wordsOf(["--word", "b", "--word", "a"], { TRY_WORD: "c" })).toEqual(["b", "a"]);
    expect(wordsOf([], { TRY_WORD: "c" })).toEqual(["c"]);
    expect(helpText(command)).toContain("a word (env TRY_WORD; repeatable)");
  });

  test("option alias is accepted, and list values are split at commas", () => {
    const args = ["-f", "a", "--color", "red, blue", "--colors=green", "--color", ","];
    expect(parseOptions(command, args, {})).toMatchObject({ colors: ["red", "blue", "green"] });
    expect(isGiven(parseOptions(command, args, {}), "colors")).toBe(true);
    // Without `separates`, a comma is part of the value.
    expect(parseOptions(command, ["-f", "a", "--word", "b,c"], {})).toMatchObject({ word: ["b,c"] });
    expect(helpText(command)).toContain("colors (comma-separated or repeated, also as --color)");
  });

  test.each([
    { name: "one that is required is missing", args: [], says: "--file is required, or set TRY_FILE" },
    {
      name: "one that does not exist is given",
      args: ["-f", "a", "--colour"],
      says: "unknown option --colour (did you mean --color?)",
    },
    { name: "one that is like no other is given", args: ["-f", "a", "--quite-else"], says: /--quite-else$/ },
    { name: "a letter does not exist", args: ["-f", "a", "-x"], says: "unknown option -x" },
    { name: "one has no value", args: ["--file"], says: "file" },
    { name: "an argument is not an option", args: ["-f", "a", "b"], says: "b" },
  ])("command options are rejected with a reason when $name", ({ args, says }) => {
    expect(() => parseOptions(command, args, {})).toThrow(UsageError);
    expect(() => parseOptions(command, args, {})).toThrow(says);
  });

  test.each(["--name=a --name=b", "--name a --quiet --name a", "--quiet --quiet"])(
    "option is accepted only once: %s",
    (line) => {
      const once = defineCommand({
        name: "x",
        summary: "x",
        options: { name: { type: "string", help: "x" }, quiet: { type: "boolean", help: "x" } },
        run: async () => 0,
      });
      expect(() => parseOptions(once, line.split(" "), {})).toThrow("may be set only once");
    },
  );

  test("help lists all options with defaults and environment variables", () => {
    const help = helpText(command);
    expect(help).toContain("-f, --file PATH  what to read (env TRY_FILE; required)");
    expect(help).toContain("--depth VALUE");
    expect(help).toContain("(default 3)");
    expect(help).toContain('--json prints {"file","depth"}');
  });
});
