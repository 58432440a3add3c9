import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { unpackedProgram } from "../harness/parts/debian-packages.ts";
import { findBinary } from "../harness/parts/find.ts";

/*
 * Sends load to an address of this machine with `wrk`, because it takes little CPU from the measured process. Limited in time and
 * connections.
 */

const run = promisify(execFile);

export interface Load {
  readonly url: string;
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent in turn, over all connections together. Default: one request without a body. */
  readonly requests?: readonly LoadRequest[];
  readonly connections: number;
  readonly durationMs: number;
}

/** What one request has of its own. Without tabs and line breaks. */
export interface LoadRequest {
  /** Default: the path of the load's `url`. */
  readonly path?: string;
  readonly authorization?: string;
  readonly body?: string;
}

export interface LoadResult {
  readonly requests: number;
  readonly requestsPerSecond: number;
  readonly p99Ms: number;
}

/** Anything else that sends requests for a while. */
export type Work = () => Promise<LoadResult>;

let wrk: Promise<string> | undefined;

/** Finds wrk: installed, or the package of Debian, unpacked into the cache. */
async function findWrk(): Promise<string> {
  const found = (await findBinary(["wrk"])) ?? (await unpackedProgram({ packages: ["wrk"] }, ["wrk"]));
  if (found === undefined) throw new Error("the benchmark sends load with wrk: install it");
  return found;
}

/** Sends the load. Throws when a response is not a success: a benchmark of refusals would look too good. */
export async function sendLoad(load: Load): Promise<LoadResult> {
  if (!/^http:\/\/127\.0\.0\.1:/.test(load.url)) throw new Error(`load goes to 127.0.0.1 only, not to ${load.url}`);
  wrk ??= findWrk();
  const folder = mkdtempSync(join(tmpdir(), "postern-wrk-"));
  try {
    const script = join(folder, "load.lua");
    const requests = join(folder, "requests");
    writeFileSync(requests, linesOf(load));
    writeFileSync(script, luaScript(load, requests));
    const seconds = Math.max(1, Math.round(load.durationMs / 1000));
    const args = ["-t1", `-c${load.connections}`, `-d${seconds}s`, "--latency", "-s", script, load.url];
    const { stdout } = await run(await wrk, args, { timeout: load.durationMs + 30_000 });
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

const linesOf = ({ url, requests = [{}] }: Load): string =>
  requests
    .map(({ path, authorization = "", body = "" }) => [path ?? new URL(url).pathname, authorization, body].join("\t"))
    .join("\n");

/** Reads the requests from a file, because a function of Lua has a limited number of constants. */
function luaScript({ method = "GET", headers = {} }: Load, requests: string): string {
  return [
    `wrk.method = ${lua(method)}`,
    ...Object.entries(headers).map(([name, value]) => `wrk.headers[${lua(name)}] = ${lua(value)}`),
    "local formatted, turn = {}, 0",
    "function init()",
    `  for line in io.lines(${lua(requests)}) do`,
    '    local path, authorization, body = line:match("^([^\\t]*)\\t([^\\t]*)\\t(.*)$")',
    '    if authorization ~= "" then wrk.headers.authorization = authorization end',
    '    formatted[#formatted + 1] = wrk.format(nil, path, nil, body ~= "" and body or nil)',
    "  end",
    "end",
    "function request() turn = turn % #formatted + 1; return formatted[turn] end",
  ].join("\n");
}

/** A Lua string literal; JSON's escapes are Lua's for everything that keys and bodies contain. */
const lua = (text: string): string => JSON.stringify(text);

function number(pattern: RegExp, text: string): number {
  const found = pattern.exec(text)?.[1];
  if (found === undefined) throw new Error(`wrk printed no ${pattern}:\n${text}`);
  return Number(found);
}

function latencyMs(match: RegExpExecArray | null): number {
  const factor = { us: 0.001, ms: 1, s: 1000 }[match?.[2] ?? ""] ?? Number.NaN;
  return Number(match?.[1]) * factor;
}
