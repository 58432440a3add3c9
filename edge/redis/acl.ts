import { DEFAULT_PREFIX } from "./keys.ts";

/*
 * Permissions of Redis users, as `ACL SETUSER` rules (Redis 7 or later, because of read-only keys and selectors). A gate's user is limited
 * to its workspace: it reads records, and writes counters, credits, events and its own report. It may run the scripts that an api-server
 * has loaded but may not load scripts, because its own script could block the whole Redis for seconds.
 *
 * Each command is allowed only on the keys that require it, so that no short command is expensive: the user can write only numbers
 * (HINCRBY, DECRBY) to values that it can read repeatedly, and keys that it removes are freed in the background (UNLINK). Redis checks each
 * command of a script too.
 */

/** Keys of the records, which only the relay writes. The relay also writes the projection state, and the change stream with its history. */
const RECORDS = ["k:{*", "i:{*", "r:{*", "a:{*", "n:{*", "nn:{*", "o:{*", "w"] as const;

/** Commands that a client sends to connect, to keep a connection alive, and to read Redis time. */
const CONNECTING = ["auth", "hello", "client|setname", "select", "info", "ping", "time"] as const;
/** Additional commands of a cluster client. */
const OF_CLUSTER = ["cluster|slots", "cluster|shards", "cluster|nodes", "cluster|info", "readonly", "asking"] as const;

/** Commands with the keys that they may touch. */
interface Grant {
  readonly commands: readonly string[];
  readonly keys: readonly string[];
  /** Allowed access to the keys. Default: reading and writing. */
  readonly access?: "read" | "write";
}

/** Grants for counting. The most frequently used ones come first, because Redis checks them in order. */
const COUNTING: readonly Grant[] = [
  { commands: ["hmget", "hincrby", "pexpire", "unlink"], keys: ["rl:{*", "cr:{*"] },
  { commands: ["sadd", "unlink"], keys: ["cr-dirty", "cr-load"] },
];
const OF_EVENTS: readonly Grant[] = [
  { commands: ["exists", "decrby", "unlink"], keys: ["events-quota:{*"] },
  { commands: ["xadd"], keys: ["events"], access: "write" },
];

export interface PodAcl {
  readonly workspaceId: string;
  readonly prefix?: string;
  /** Whether the user is for a Redis that contains only events. */
  readonly store?: "all" | "events";
  /** Gate to which the user is restricted: it can read only this gate's policy and write only this pod's report. */
  readonly gate?: { readonly policyId: string; readonly podId: string };
  /** Whether the user may also load scripts, for a Redis into which no api-server loads them. */
  readonly mayEval?: boolean;
}

/** Returns the ACL rules of a gate's user, without its password. Throws if a name is not allowed in a rule. */
export function podAclRules({
  workspaceId,
  prefix = DEFAULT_PREFIX,
  store = "all",
  mayEval = false,
  gate,
}: PodAcl): string[] {
  const grants = store === "events" ? OF_EVENTS : [...COUNTING, ...OF_EVENTS, ...ofPolicy(gate)];
  const base = `${pattern(prefix)}:${pattern(workspaceId)}:`;
  const read = grants.filter(({ access }) => access === "read").flatMap(({ keys }) => keys);
  const others = grants.filter(({ access }) => access !== "read").flatMap(({ keys }) => keys);
  // A script call names all of its keys, so a single grant must allow all of them. The other grants limit the commands for each key.
  const scripts = ["evalsha", "evalsha_ro", ...(mayEval ? ["eval", "eval_ro"] : [])];
  return [
    "reset",
    "on",
    ...read.map((key) => `%R~${base}${key}`),
    ...others.map((key) => `~${base}${key}`),
    "resetchannels",
    "-@all",
    ...[...CONNECTING, ...OF_CLUSTER, ...scripts].map((name) => `+${name}`),
    ...grants.map((grant) => selector(base, grant)),
  ];
}

function ofPolicy(gate: PodAcl["gate"]): readonly Grant[] {
  const policyId = gate === undefined ? undefined : pattern(gate.policyId);
  const policy = policyId === undefined ? "p:{*" : `p:{${policyId}}`;
  const reports = gate === undefined ? "pods:{*" : `pods:{${policyId}}:${pattern(gate.podId)}`;
  const alive = policyId === undefined ? "pods-alive:{*" : `pods-alive:{${policyId}}`;
  return [
    // A command can name the same field or key many times, and Redis reads it each time. These commands are therefore limited to keys with
    // short values.
    { commands: ["hmget"], keys: ["state:{*", "history:{*"], access: "read" },
    { commands: ["getrange", "hget", "hstrlen"], keys: [...RECORDS, policy], access: "read" },
    { commands: ["xread", "xrevrange"], keys: ["changes:{*"], access: "read" },
    { commands: ["hset", "hdel", "pexpire", "unlink"], keys: [reports] },
    { commands: ["zadd", "zcard", "zcount", "zremrangebyrank", "pexpire", "unlink"], keys: [alive] },
  ];
}

function selector(base: string, { commands, keys, access }: Grant): string {
  const sign = access === undefined ? "~" : access === "read" ? "%R~" : "%W~";
  return `(${[...commands.map((name) => `+${name}`), ...keys.map((key) => `${sign}${base}${key}`)].join(" ")})`;
}

/** Commands that an api-server needs although Redis classifies them as dangerous, and commands for scripts. */
const CONTROL_PLANE_COMMANDS = [
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

/** Commands for managing users. A user that has them can create a user with any permission. */
const MAKING_USERS = ["+acl|setuser", "+acl|deluser", "+acl|users"] as const;

export interface ControlPlaneAcl {
  readonly prefix?: string;
  /** Whether api-servers create the users of gates. */
  readonly managesUsers?: boolean;
}

/** Returns the ACL rules of the api-servers' user: all keys with the prefix, and no server-wide commands. */
export function controlPlaneAclRules({
  prefix = DEFAULT_PREFIX,
  managesUsers = false,
}: ControlPlaneAcl = {}): string[] {
  const more = managesUsers ? MAKING_USERS : [];
  return ["reset", "on", `~${pattern(prefix)}:*`, "resetchannels", "-@all", ...CONTROL_PLANE_COMMANDS, ...more];
}

/** Escapes text so that a key pattern matches it literally. Redis splits a selector at spaces, quotes and parentheses. */
function pattern(text: string): string {
  if (text === "" || /[\s\p{Cc}"'()]/u.test(text))
    throw new Error(`${JSON.stringify(text)} cannot stand in a rule of an ACL`);
  return text.replace(/[\\*?[\]^]/g, (character) => `\\${character}`);
}
