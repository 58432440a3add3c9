import { resolve } from "node:path";
import { describe, expect, test } from "vitest";
import { type Command, parseOptions, UsageError } from "../../cli/command.ts";
import { COMMANDS } from "../../cli/commands.ts";
import { SERVICES } from "../../scripts/generate/configuration-page.ts";
import { PROGRAM, startProcess } from "../harness/process.ts";

/* Compares the options in docs/operations/configuration.md with those that the commands accept. */

const commands = await Promise.all(
  SERVICES.map((name) => (COMMANDS.find((row) => row.name === name) as (typeof COMMANDS)[number]).load()),
);

/** Returns the options without which a command does not start. */
const required = ({ options }: Command, but: string): string[] =>
  Object.entries(options).flatMap(([name, row]) =>
    row.required === true && name !== but ? [`--${name}`, name === "api-url" ? "http://a" : "a"] : [],
  );

interface Case {
  readonly command: Command;
  readonly option: string;
  readonly env: string | undefined;
  readonly value: string;
}

const options = commands.flatMap((command) =>
  Object.entries(command.options).map(([option, row]) => ({ command, option, row })),
);
const casesOf = (values: (accepts: NonNullable<(typeof options)[number]["row"]["accepts"]>) => readonly string[]) =>
  options.flatMap(({ command, option, row }): Case[] =>
    row.accepts === undefined
      ? []
      : values(row.accepts)
          .filter((value) => value !== row.default)
          .map((value) => ({ command, option, env: row.env, value })),
  );

const wrong = casesOf((accepts) => {
  if ("min" in accepts && "max" in accepts) {
    const { min, max } = accepts as { min: number; max: number };
    return [String(min - 1), String(max + 1), "many", "1.5", "0x1", " 1", "", "9".repeat(400)];
  }
  if (accepts.unit === "port") return ["-1", "65536", "http", "", "1e9999"];
  if ("minMs" in accepts && "maxMs" in accepts) {
    const { minMs, maxMs } = accepts as { minMs: number; maxMs: number };
    return [...(minMs > 1 ? ["1ms"] : []), `${maxMs + 1}ms`, "soon", "", "-1s", "1", "1.5s", " 1s"];
  }
  if (accepts.unit === "word") return ["maybe", "", "ON"];
  if (accepts.unit === "URL") return ["example.com", "", "ftp://a", "//a", "file:///etc/passwd"];
  if (accepts.unit === "address" && accepts.says.startsWith("PORT")) return ["", "a b:1", "127.0.0.1:70000"];
  if (accepts.unit === "addresses and CIDR blocks") return ["", "10.0.0.0/33", "gateway"];
  return [];
});
const right = casesOf((accepts) => {
  if ("minMs" in accepts && "maxMs" in accepts) return [`${accepts.minMs}ms`, `${accepts.maxMs}ms`];
  if ("min" in accepts && "max" in accepts) return [String(accepts.min), String(accepts.max).slice(0, 15)];
  if (accepts.unit === "port") return ["0", "65535"];
  return "words" in accepts ? (accepts.words as string[]) : [];
});

test("every command option documents its accepted values", () => {
  expect(options.length).toBeGreaterThan(120);
  for (const { command, option, row } of options) {
    if (row.type === "string") expect(row.accepts, `${command.name} --${option}`).toBeDefined();
  }
  expect(wrong.length).toBeGreaterThan(250);
});

const parse =
  (command: Command, args: string[], env = {}) =>
  () =>
    parseOptions(command, args, env);

test.each(wrong)(
  "$command.name --$option rejects $value, and the error states the expected format",
  ({ command, option, env, value }) => {
    const others = required(command, option);
    expect(parse(command, [...others, `--${option}=${value}`])).toThrow(UsageError);
    expect(parse(command, [...others, `--${option}=${value}`])).toThrow(`for --${option}: must be `);
    if (env === undefined || value === "") return;
    expect(parse(command, others, { [env]: value })).toThrow(`for --${option} (${env}): must be `);
  },
);

test.each(right)("$command.name --$option accepts $value", ({ command, option, value }) => {
  expect(parse(command, [...required(command, option), `--${option}=${value}`])()).toMatchObject({ [option]: value });
});

test("empty variables count as unset, switches are validated, and messages omit addresses", () => {
  const sidecar = commands.find(({ name }) => name === "sidecar") as Command;
  const operator = commands.find(({ name }) => name === "operator") as Command;
  expect(parse(sidecar, required(sidecar, ""), { POSTERN_DRAIN_TIMEOUT: "" })()).toMatchObject({
    "drain-timeout": "4s",
  });
  const leads = (value: string) =>
    parseOptions(operator, required(operator, ""), { POSTERN_LEADER_ELECTION: value })["leader-election"];
  expect(["1", "true", "0", "false", ""].map(leads)).toEqual([true, true, false, false, false]);
  expect(() => leads("yes")).toThrow("for POSTERN_LEADER_ELECTION: must be 1, true, 0 or false");
  const secret = "http://user:s3cret@redis";
  for (const given of [
    parse(sidecar, [...required(sidecar, ""), "--redis-url", secret]),
    parse(sidecar, required(sidecar, ""), { REDIS_URL: secret }),
  ]) {
    expect(given).toThrow(/invalid value for --redis-url.*: must be a URL that begins with redis:\/\//);
    expect(given).not.toThrow("s3cret");
  }
});

describe("a process", () => {
  const ROOT = resolve(import.meta.dirname, "../..");
  const start = (env: Record<string, string>) =>
    startProcess(
      process.execPath,
      [PROGRAM, "sidecar", "--workspace", "w", "--policy", "pol_p", "--upstream", "http://127.0.0.1:9"],
      {
        cwd: ROOT,
        env: {
          REDIS_URL: "redis://127.0.0.1:9",
          POSTERN_HOST: "127.0.0.1",
          POSTERN_SIDECAR_PORT: "0",
          POSTERN_ADMIN_PORT: "0",
          POSTERN_DRAIN_TIMEOUT: "0",
          ...env,
        },
      },
    );

  test("process warns about an unknown variable with a suggestion, but not about variables of Kubernetes Services", async () => {
    const child = await start({
      POSTERN_DRIAN_TIMEOUT: "9",
      ...{
        POSTERN_ADMIN_SERVICE_HOST: "10.0.0.7",
        POSTERN_ADMIN_SERVICE_PORT: "80",
        POSTERN_ADMIN_PORT: "tcp://10.0.0.7:80",
      },
      POSTERN_WEBHOOK_PORT: "1",
    });
    const lines = () =>
      child
        .stderr()
        .split("\n")
        .filter((line) => line.includes('"level":40'));
    for (const deadline = Date.now() + 30_000; !child.stderr().includes("listening") && Date.now() < deadline; ) {
      await new Promise((done) => setTimeout(done, 20));
    }
    expect(
      lines()
        .filter((line) => line.includes("variable"))
        .map((line) => JSON.parse(line)),
    ).toMatchObject([
      {
        variable: "POSTERN_DRIAN_TIMEOUT",
        nearest: "POSTERN_DRAIN_TIMEOUT",
        msg: "unknown environment variable; it has no effect",
      },
    ]);
    // The variable contains the Service address rather than a port, so the default port applies.
    expect(child.stderr()).toMatch(/"adminUrl":"http:\/\/127\.0\.0\.1:8001"|EADDRINUSE/);
    await child.stop();
  });

  test.each([
    {
      env: { POSTERN_DRAIN_TIMEOUT: "soon" },
      says: /^postern sidecar: invalid value "soon" for --drain-timeout \(POSTERN_DRAIN_TIMEOUT\): must be a duration from 0s to 1h/,
    },
    {
      env: { POSTERN_LOG_LEVEL: "loud" },
      says: /^postern sidecar: invalid value "loud" for POSTERN_LOG_LEVEL: must be trace or debug/,
    },
    {
      env: { POSTERN_DRAIN_TIMEOUT: "", REDIS_CA_FILE: "/nowhere/ca.pem" },
      says: /^postern sidecar: cannot open "\/nowhere\/ca\.pem": it does not exist; correct --redis-ca-file/,
    },
  ])("process with $env exits with code 2 and one line of output", async ({ env, says }) => {
    const child = await start(env);
    expect(await child.exited).toEqual({ code: 2, signal: null });
    expect(child.stderr().trim().split("\n")).toEqual([expect.stringMatching(says)]);
  });
});
