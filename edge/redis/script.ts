import { createHash } from "node:crypto";
import { Command } from "ioredis";
import { isCluster, type RedisClient } from "./connect.ts";

/** A Lua script: its text and its SHA-1. The server caches the script under the SHA-1. */
export interface Script {
  readonly lua: string;
  readonly sha: string;
  readonly bounds: Required<CallLimits>;
}

/**
 * Size limits of a script call. They equal the size of the largest call that Postern sends. ACLs cannot limit the size of script calls, so
 * each script rejects larger calls itself.
 */
export interface CallLimits {
  readonly keys: number;
  /** Maximum number of arguments of a call, not counting those per key. Default: 0. */
  readonly args?: number;
  /** Additional arguments per key. Default: 0. */
  readonly argsPerKey?: number;
  /** Maximum bytes of one argument. Default: 64, enough for a number, an id or a user name. */
  readonly argBytes?: number;
}

/**
 * Adds a size check at the start of a script, so that a call that exceeds the limits fails before it does any work. The check is needed
 * because the Redis user of a gate can run every loaded script, and a running script blocks Redis.
 */
export function defineScript({ keys, args = 0, argsPerKey = 0, argBytes = 64 }: CallLimits, body: string): Script {
  const argsMax = argsPerKey === 0 ? `${args}` : `${args} + ${argsPerKey} * #KEYS`;
  const lua = `
local is_too_large = #KEYS > ${keys} or #ARGV > ${argsMax}
for i = 1, is_too_large and 0 or #ARGV do is_too_large = is_too_large or #ARGV[i] > ${argBytes} end
if is_too_large then
  return redis.error_reply('ERR too large a call of this script: at most ${keys} keys, ${argsMax} arguments, ${argBytes} bytes each')
end
${body}`;
  const sha = createHash("sha1").update(lua).digest("hex");
  return { lua, sha, bounds: { keys, args, argsPerKey, argBytes } };
}

/**
 * Runs a script by its hash. A server that does not know the hash has executed nothing, so it is safe to retry with the script's text, even
 * if the script consumes units. `argv` begins with the keys. Bypasses the client's generic wrapper, because every counted request takes
 * this path.
 */
export function runScript(
  client: RedisClient,
  script: Script,
  numberOfKeys: number,
  argv: readonly (string | number | Buffer)[],
): Promise<unknown> {
  const sent = send(client, "evalsha", [script.sha, numberOfKeys, ...argv]);
  return sent.catch((error: unknown) => {
    if (error instanceof Error && error.message.startsWith("NOSCRIPT")) {
      return send(client, "eval", [script.lua, numberOfKeys, ...argv]);
    }
    throw error;
  });
}

/**
 * Runs a read-only script with a command that needs no write permission on its keys, because a gate may not write the keys that the relay
 * writes. Before version 7, Redis has neither this command nor such permissions.
 */
export async function runReadingScript(
  client: RedisClient,
  script: Script,
  numberOfKeys: number,
  argv: readonly (string | number)[],
): Promise<unknown> {
  try {
    return await send(client, "evalsha_ro", [script.sha, numberOfKeys, ...argv]);
  } catch (error) {
    const message = error instanceof Error ? error.message : "";
    if (message.startsWith("NOSCRIPT")) return send(client, "eval_ro", [script.lua, numberOfKeys, ...argv]);
    if (/unknown command/i.test(message)) return runScript(client, script, numberOfKeys, argv);
    throw error;
  }
}

/** Parses a reply of the Lua function `exact` in `lua.ts`. Throws if it is invalid. */
export const readNumbers = (reply: unknown): number[] => JSON.parse(reply as string) as number[];

export interface ScriptCall {
  readonly script: Script;
  readonly keys: readonly string[];
  readonly args: readonly (string | number)[];
}

/**
 * Runs script calls in order, in one pipeline if a single connection serves all of them. Each call must be safe to repeat, because all
 * calls are sent again if the server does not know a script. Throws the first error, although other calls may have been executed.
 */
export async function runScripts(client: RedisClient, calls: readonly ScriptCall[]): Promise<unknown[]> {
  const replies = await runScriptsEach(client, calls);
  const failure = replies.find((reply) => reply instanceof Error);
  if (failure !== undefined) throw failure;
  return replies;
}

/** Variant of `runScripts` that returns the error of a failed call instead of its reply. */
export async function runScriptsEach(client: RedisClient, calls: readonly ScriptCall[]): Promise<unknown[]> {
  if (isCluster(client)) {
    const run = ({ script, keys, args }: ScriptCall) => runScript(client, script, keys.length, [...keys, ...args]);
    return Promise.all(calls.map((call) => run(call).catch(toError)));
  }
  for (let attempt = 0; ; attempt++) {
    const pipeline = client.pipeline();
    for (const { script, keys, args } of calls) pipeline.evalsha(script.sha, keys.length, ...keys, ...args);
    const replies = ((await pipeline.exec()) ?? []).map(([error, reply]) => error ?? reply);
    const isUnknown = replies.some((reply) => reply instanceof Error && reply.message.startsWith("NOSCRIPT"));
    if (attempt > 0 || !isUnknown) return replies;
    const texts = new Set(calls.map(({ script }) => script.lua));
    await Promise.all([...texts].map((lua) => client.script("LOAD", lua)));
  }
}

const toError = (error: unknown): Error => (error instanceof Error ? error : new Error(String(error)));

const UTF8 = { replyEncoding: "utf8" } as const;

const send = (client: RedisClient, name: string, args: (string | number | Buffer)[]): Promise<unknown> =>
  client.sendCommand(new Command(name, args, UTF8)) as Promise<unknown>;

/** Rejects if `work` takes too long. The work is not canceled, but its result is ignored. */
export async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
