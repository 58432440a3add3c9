import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import autocannon from "autocannon";

/*
 * Sends load to an address of this machine: by `wrk` if it is installed, because it takes little CPU from the measured process, else
 * by `autocannon`. Limited in time and connections.
 */

const run = promisify(execFile);

export interface Load {
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** A header of which each request has another value, in turn. Not together with bodies. */
  readonly varied?: { readonly name: string; readonly values: readonly string[] };
  /** Sent in turn; several bodies spread the load over several keys. */
  readonly bodies?: readonly string[];
  /** The path of each body. Default: that of `url`. */
  readonly paths?: readonly string[];
  readonly connections: number;
  readonly durationMs: number;
}

export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p99Ms: number;
}

/** Anything else that sends requests for a while. */
export type Work = () => Promise<LoadResult>;

export const hasWrk = await run("wrk", ["--version"]).then(
  () => true,
  (error: { code?: unknown }) => error.code !== "ENOENT",
);

/** Sends the load. Throws when a response is not a success: a benchmark of refusals would look too good. */
export async function sendLoad(load: Load): Promise<LoadResult> {
  if (!/^http:\/\/127\.0\.0\.1:/.test(load.url)) throw new Error(`load goes to 127.0.0.1 only, not to ${load.url}`);
  return hasWrk ? sendWithWrk(load) : sendWithAutocannon(load);
}

async function sendWithWrk(load: Load): Promise<LoadResult> {
  const folder = mkdtempSync(join(tmpdir(), "postern-wrk-"));
  try {
    const script = join(folder, "load.lua");
    const values = join(folder, "values");
    writeFileSync(values, load.varied?.values.join("\n") ?? "");
    writeFileSync(script, luaScript(load, values));
    const seconds = Math.max(1, Math.round(load.durationMs / 1000));
    const args = ["-t1", `-c${load.connections}`, `-d${seconds}s`, "--latency", "-s", script, load.url];
    const { stdout } = await run("wrk", args, { timeout: load.durationMs + 30_000 });
    const failures = /Non-2xx or 3xx responses: (\d+)/.exec(stdout)?.[1] ?? /Socket errors: (.*)/.exec(stdout)?.[1];
    if (failures !== undefined) throw new Error(`${load.url}: wrk met failures: ${failures}\n${stdout}`);
    return {
      requests: number(/(\d+) requests in/, stdout),
      requestsPerSecond: number(/Requests\/sec:\s+([\d.]+)/, stdout),
      p99Ms: latencyMs(/99%\s+([\d.]+)(us|ms|s)/.exec(stdout)),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function luaScript(load: Load, values: string): string {
  const headers = Object.entries(load.headers ?? {}).map(
    ([name, value]) => `wrk.headers[${lua(name)}] = ${lua(value)}`,
  );
  const { bodies = [], paths = [] } = load;
  return [
    `wrk.method = ${lua(load.method ?? "GET")}`,
    ...headers,
    `local bodies = { ${bodies.map(lua).join(", ")} }`,
    `local paths = { ${paths.map(lua).join(", ")} }`,
    "local formatted, turn = {}, 0",
    "function init()",
    "  for i, body in ipairs(bodies) do formatted[i] = wrk.format(nil, paths[i], nil, body) end",
    ...(load.varied === undefined
      ? []
      : [
          // From a file, because a function of Lua has a limited number of constants.
          `  for value in io.lines(${lua(values)}) do`,
          `    wrk.headers[${lua(load.varied.name)}] = value`,
          "    formatted[#formatted + 1] = wrk.format()",
          "  end",
        ]),
    "end",
    `if #bodies > 0 or ${load.varied !== undefined} then function request() turn = turn % #formatted + 1; return formatted[turn] end end`,
  ].join("\n");
}

/** A Lua string literal; JSON's escapes are Lua's for everything that keys and bodies contain. */
const lua = (text: string): string => JSON.stringify(text);

async function sendWithAutocannon(load: Load): Promise<LoadResult> {
  const { url, method = "GET", headers = {}, bodies, paths, varied } = load;
  const result = await autocannon({
    url,
    method,
    headers: { ...headers },
    connections: load.connections,
    duration: Math.max(1, Math.round(load.durationMs / 1000)),
    ...(bodies === undefined
      ? {}
      : { requests: bodies.map((body, index) => ({ body, ...(paths && { path: paths[index] as string }) })) }),
    ...(varied === undefined
      ? {}
      : { requests: varied.values.map((value) => ({ headers: { ...headers, [varied.name]: value } })) }),
  });
  if (result.non2xx > 0 || result.errors > 0) {
    throw new Error(`${url}: autocannon met ${result.non2xx} refusals and ${result.errors} errors`);
  }
  return { requests: result.requests.total, requestsPerSecond: result.requests.average, p99Ms: result.latency.p99 };
}

function number(pattern: RegExp, text: string): number {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`wrk printed no ${pattern}:\n${text}`);
  return Number(found);
}

function latencyMs(match: RegExpExecArray | null): number {
  const factor = { us: 0.001, ms: 1, s: 1000 }[match?.[2] ?? ""] ?? Number.NaN;
  return Number(match?.[1]) * factor;
}
