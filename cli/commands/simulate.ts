import type { CheckedYaml, FileProblem } from "../checked-yaml.ts";
import { readCheckedYaml, sayFileProblem, WrongFile } from "../checked-yaml.ts";
import { defineCommand, type Io, UsageError } from "../command.ts";
import { formatExplanation } from "../explanation.ts";
import { printable, printableJson } from "../fields.ts";
import { readManifests, sayProblem } from "../manifests.ts";
import { json, manifestPaths } from "../options.ts";
import { EXIT_CODES_HELP, exitCodeOf } from "../outcomes.ts";
import { parseHeaders } from "../request-line.ts";
import { Cases, TIMES_MAX } from "../simulate/cases.ts";
import { makeWorld, type World } from "../simulate/environment.ts";
import { Fixtures } from "../simulate/fixtures.ts";
import { OfflineGate } from "../simulate/gate.ts";
import {
  type CaseResult,
  DEFAULT_HOST,
  type RequestedRequest,
  type ResolvedRequest,
  resolve,
  runCase,
  send,
} from "../simulate/run.ts";
import { parseInstant, parseInteger } from "../values.ts";

export const simulate = defineCommand({
  name: "simulate",
  description: `Evaluates requests in this process as a gate does: with the policies, roles, overrides and keys of the manifests, the keys and owners of --fixtures, and empty counters. Requests are charged in order. With --cases each case starts with empty counters, and the exit code is 1 if a result differs. docs/explain.md describes both files. ${EXIT_CODES_HELP}`,
  options: {
    file: manifestPaths,
    fixtures: {
      type: "string",
      placeholder: "FILE",
      help: "file of keys, owners and other data that manifests do not define",
    },
    request: { type: "string", placeholder: "'METHOD PATH'", help: "request, such as 'POST /orders'", repeats: true },
    cases: {
      type: "string",
      placeholder: "FILE",
      help: "file of requests with their expected outcomes, instead of --request",
    },
    policy: {
      type: "string",
      placeholder: "NAMESPACE/NAME",
      help: "ApiKeyPolicy; required if the manifests define several",
    },
    key: { type: "string", placeholder: "NAME", help: "key to send; required if the fixtures define several" },
    "no-key": { type: "boolean", help: "send the request without a key" },
    host: { type: "string", placeholder: "HOST", help: "Host header", default: DEFAULT_HOST },
    header: { type: "string", placeholder: "'NAME: VALUE'", help: "request header", repeats: true },
    "client-address": {
      type: "string",
      placeholder: "ADDRESS",
      help: "client address",
      default: "127.0.0.1",
    },
    at: {
      type: "string",
      placeholder: "TIME",
      help: "time of the request: 2026-11-21T09:30:00Z (default: `now` of the fixtures, or the current time)",
    },
    times: {
      type: "string",
      placeholder: "N",
      help: "number of times to send each request; shows the last result",
      default: "1",
    },
    json,
  },
  response: '{"decisions":[…]} with the steps of each request, or {"cases":[…],"differ"}',
  run: async (options, io) => {
    const { request: lines, cases: casesFile } = options;
    if ((lines.length === 0) === (casesFile === undefined)) throw new UsageError("set --request or --cases");
    const read = await readWorld(options.file, options.fixtures, io);
    if (read === undefined) return 1;
    const { world, fixtures } = read;
    const nowMs =
      options.at === undefined
        ? (fixtures.value.now ?? Date.now())
        : parseInstant("at", options.at, { nowMs: Date.now(), spans: "ahead" });
    if (casesFile !== undefined) return runCases(io, { file: casesFile, world, nowMs, asJson: options.json });
    const times = parseInteger("times", options.times, { min: 1, max: TIMES_MAX });
    const asked = {
      policy: options.policy,
      key: options["no-key"] ? (false as const) : options.key,
      headers: parseHeaders("header", options.header),
      host: options.host,
      clientAddress: options["client-address"],
    };
    const requests = lines.map((request) => resolveOption(world, { ...asked, request }));
    return decideRequests(io, { world, nowMs, lines, requests, times, asJson: options.json });
  },
});

/** Returns the environment from manifests and fixtures. If the files have problems, prints them and returns `undefined`. */
async function readWorld(
  paths: readonly string[],
  fixturesFile: string | undefined,
  io: Io,
): Promise<{ readonly world: World; readonly fixtures: CheckedYaml<Fixtures> } | undefined> {
  const { objects: found, problems } = await readManifests(paths, io);
  for (const problem of problems) io.note(printable(sayProblem(problem)));
  const fixtures = orProblems(io, () =>
    fixturesFile === undefined ? NO_FIXTURES : readCheckedYaml(fixturesFile, Fixtures),
  );
  if (problems.length > 0 || fixtures === undefined) return undefined;
  const objects = found.map(({ kind, metadata, spec, file, line }) => ({
    desired: { kind, spec, ...metadata },
    file,
    line,
  }));
  const made = makeWorld(objects, fixtures);
  if ("world" in made) return { world: made.world, fixtures };
  say(io, made.problems);
  return undefined;
}

const NO_FIXTURES: CheckedYaml<Fixtures> = {
  value: Fixtures.parse({}),
  problemAt: (_path, message) => ({ file: "fixtures", line: 1, location: "", message }),
};

function orProblems<T>(io: Io, read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof WrongFile)) throw error;
    say(io, error.problems);
    return undefined;
  }
}

function say(io: Io, problems: readonly FileProblem[]): void {
  for (const problem of problems) io.note(printable(sayFileProblem(problem)));
}

function resolveOption(world: World, asked: RequestedRequest): ResolvedRequest {
  const resolved = resolve(world, asked);
  if ("active" in resolved) return resolved;
  throw new UsageError(`--${resolved.field}: ${resolved.message}`);
}

interface Requests {
  readonly world: World;
  readonly nowMs: number;
  readonly lines: readonly string[];
  readonly requests: readonly ResolvedRequest[];
  readonly times: number;
  readonly asJson: boolean;
}

async function decideRequests(io: Io, { world, nowMs, lines, requests, times, asJson }: Requests): Promise<number> {
  const gate = await OfflineGate.open(world, nowMs);
  try {
    const decisions: object[] = [];
    let exitCode = 0;
    for (const [i, request] of requests.entries()) {
      const { expected, ...decision } = await send(gate, request, times);
      const { record, policy } = request.active;
      const shown = { ...expected, ...decision, mode: policy.mode };
      exitCode = exitCodeOf(decision.code, decision.allowed);
      const about = { request: lines[i], key: request.key?.name ?? null, policy: record.name };
      decisions.push({ ...about, ...shown });
      if (asJson) continue;
      if (i > 0) io.out("");
      const sent = times === 1 ? "" : `, request ${times} of ${times}, ${decision.passed} passed`;
      io.out(printable(`${about.request} as ${about.key ?? "no key"} at ${about.policy}${sent}`));
      for (const line of formatExplanation(shown, io.columns)) io.out(line);
    }
    if (asJson) io.out(printableJson({ decisions }));
    return exitCode;
  } finally {
    await gate.close();
  }
}

interface CasesRun {
  readonly file: string;
  readonly world: World;
  readonly nowMs: number;
  readonly asJson: boolean;
}

async function runCases(io: Io, { file, world, nowMs, asJson }: CasesRun): Promise<number> {
  const read = orProblems(io, () => readCheckedYaml(file, Cases));
  if (read === undefined) return 1;
  const { cases } = read.value;
  const problems: FileProblem[] = [];
  const resolved = cases.map(({ steps }, i) =>
    steps.flatMap((step, j): ResolvedRequest[] => {
      const found = resolve(world, { ...step, headers: Object.entries(step.headers ?? {}) });
      if ("active" in found) return [found];
      problems.push(read.problemAt(["cases", i, "steps", j, found.field], found.message));
      return [];
    }),
  );
  say(io, problems);
  if (problems.length > 0) return 1;
  const results: CaseResult[] = [];
  for (const [i, one] of cases.entries()) {
    const result = await runCase(world, one, { requests: resolved[i] ?? [], nowMs });
    results.push(result);
    if (!asJson) for (const line of resultLines(result, read.problemAt(["cases", i], ""))) io.out(line);
  }
  const differ = results.filter(isDifferent).length;
  if (asJson) io.out(printableJson({ cases: results.map(toJson), differ }));
  else io.out(`${results.length} cases, ${differ} failed`);
  return differ === 0 ? 0 : 1;
}

const isDifferent = ({ steps }: CaseResult): boolean => steps.some(({ differences }) => differences.length > 0);

function resultLines(result: CaseResult, { file, line }: FileProblem): string[] {
  const { name, steps } = result;
  if (!isDifferent(result)) return [`✓ ${printable(name)}`];
  const last = steps.at(-1);
  const deciding = last?.decision.expected.steps.find(({ decisive }) => decisive);
  return [
    `✗ ${printable(name)} (${file}:${line})`,
    ...(last?.differences ?? []).map((difference) => printable(`    ${last?.step.request}: ${difference}`)),
    ...(deciding === undefined ? [] : [`    ${deciding.step}: ${printable(deciding.detail)}`]),
  ];
}

const toJson = ({ name, steps }: CaseResult) => ({
  name,
  steps: steps.map(({ step, decision: { expected, ...decision }, differences }) => ({
    request: step.request,
    ...decision,
    rule: expected.rule ?? null,
    ...(expected.ruleName === undefined ? {} : { ruleName: expected.ruleName }),
    decisive: expected.steps.find(({ decisive }) => decisive)?.step ?? null,
    differences,
  })),
});
