import { DEFAULT_PREFIX } from "./keys.ts";

/*
 * The permissions of Redis users, as rules of `ACL SETUSER` (Redis 7 or later, because some keys are read-only). A pod's user is
 * limited to its workspace: it reads records, and writes counters, credits, events and its own report. It may run the scripts that an
 * api-server has loaded, but not load scripts: a script of its own could block the whole Redis for seconds.
 */

/** Records, the mark and the change stream, which only the relay writes. */
const READ_ONLY = ["k:{*", "i:{*", "r:{*", "a:{*", "n:{*", "nn:{*", "o:{*", "w", "mark:{*", "changes:{*"] as const;
const WRITTEN = ["rl:{*", "cr:{*", "cr-dirty", "cr-load"] as const;
const OF_EVENTS = ["events", "events-room:{*"] as const;

/** What a client sends to connect, to keep a connection alive, and to read the store's clock. */
const CONNECTING = ["auth", "hello", "client|setname", "select", "info", "ping", "time"] as const;
/** What a client of a cluster sends in addition. */
const OF_CLUSTER = ["cluster|slots", "cluster|shards", "cluster|nodes", "cluster|info", "readonly", "asking"] as const;
const READING = ["getrange", "hget", "hmget", "hstrlen", "xread", "xrevrange", "evalsha_ro"] as const;
/** Commands inside scripts, except the last one: each command of a script is checked too. DEL removes a counter of a wrong type. */
const COUNTING = ["evalsha", "hset", "pexpire", "sadd", "del", "hdel"] as const;
const COUNTING_PODS = ["zadd", "zremrangebyscore", "zcard"] as const;
const APPENDING = ["evalsha", "get", "set", "xadd", "decrby"] as const;

export interface PodAcl {
  readonly workspaceId: string;
  readonly prefix?: string;
  /** `events`: the user of a Redis that is for events alone. */
  readonly store?: "all" | "events";
  /** The user of one gate: it reads no policy but its own, and writes no report but its own. */
  readonly gate?: { readonly policyId: string; readonly podId: string };
  /** Allow loading scripts too: for a Redis in which api-servers load none. */
  readonly mayEval?: boolean;
}

/** Returns the rules of a pod's user, without its password. Throws when a name is not allowed in a rule. */
export function podAclRules({
  workspaceId,
  prefix = DEFAULT_PREFIX,
  store = "all",
  mayEval = false,
  gate,
}: PodAcl): string[] {
  const base = `${pattern(prefix)}:${pattern(workspaceId)}:`;
  const ofEventsAlone = store === "events";
  const keys = [
    ...(ofEventsAlone ? [] : READ_ONLY.map((key) => `%R~${base}${key}`)),
    ...(ofEventsAlone ? [] : ofPolicy(gate).read.map((key) => `%R~${base}${key}`)),
    ...[...(ofEventsAlone ? [] : [...WRITTEN, ...ofPolicy(gate).written]), ...OF_EVENTS].map((key) => `~${base}${key}`),
  ];
  const commands = new Set([
    ...CONNECTING,
    ...OF_CLUSTER,
    ...(ofEventsAlone ? [] : [...READING, ...COUNTING, ...COUNTING_PODS]),
    ...APPENDING,
    ...(mayEval ? ["eval", "eval_ro"] : []),
  ]);
  return ["reset", "on", ...keys, "resetchannels", "-@all", ...[...commands].map((name) => `+${name}`)];
}

function ofPolicy(gate: PodAcl["gate"]): { read: readonly string[]; written: readonly string[] } {
  if (gate === undefined) return { read: ["p:{*"], written: ["pods:{*", "pods-alive:{*"] };
  const policyId = pattern(gate.policyId);
  const written = [`pods:{${policyId}}:${pattern(gate.podId)}`, `pods-alive:{${policyId}}`];
  return { read: [`p:{${policyId}}`], written };
}

/** What an api-server needs of scripting, and of the commands that Redis lists as dangerous. */
const CENTRAL_COMMANDS = [
  "+@read",
  "+@write",
  "+@connection",
  "+@transaction",
  "+@scripting",
  "-@dangerous",
  "-script|flush",
  "-script|kill",
  "-function",
  "+info",
  "+role",
  "+time",
  "+memory|usage",
  ...OF_CLUSTER.map((name) => `+${name}`),
] as const;

/** A user that may make users may make one that may do anything. */
const MAKING_USERS = ["+acl|setuser", "+acl|deluser", "+acl|users"] as const;

export interface CentralAcl {
  readonly prefix?: string;
  /** Whether api-servers make the users of gates. */
  readonly makesUsers?: boolean;
}

/** Returns the rules of the api-servers' user: all keys with the prefix, and nothing that concerns the server as a whole. */
export function centralAclRules({ prefix = DEFAULT_PREFIX, makesUsers = false }: CentralAcl = {}): string[] {
  const more = makesUsers ? MAKING_USERS : [];
  return ["reset", "on", `~${pattern(prefix)}:*`, "resetchannels", "-@all", ...CENTRAL_COMMANDS, ...more];
}

/** Escapes text so that a key pattern matches it literally. */
function pattern(text: string): string {
  if (text === "" || /[\s\p{Cc}]/u.test(text))
    throw new Error(`${JSON.stringify(text)} cannot stand in a rule of an ACL`);
  return text.replace(/[\\*?[\]^]/g, (character) => `\\${character}`);
}
