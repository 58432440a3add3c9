import { DEFAULT_PREFIX } from "./keys.ts";

/*
 * The permissions of Redis users, as rules of `ACL SETUSER` (Redis 7 or later, because of read-only keys and selectors). A pod's user is
 * limited to its workspace: it reads records, and writes counters, credits, events and its own report. It may run the scripts that an
 * api-server has loaded, but not load scripts: a script of its own could block the whole Redis for seconds.
 *
 * A command may touch only the keys that it is for, so that no short command is expensive: what the user can read again, it can fill
 * with numbers alone (HINCRBY, DECRBY), and what it removes is freed in the background (UNLINK). Each command of a script is checked too.
 */

/** Records, the mark and the change stream, which only the relay writes. */
const RECORDS = ["k:{*", "i:{*", "r:{*", "a:{*", "n:{*", "nn:{*", "o:{*", "w", "mark:{*", "changes:{*"] as const;

/** What a client sends to connect, to keep a connection alive, and to read the store's clock. */
const CONNECTING = ["auth", "hello", "client|setname", "select", "info", "ping", "time"] as const;
/** What a client of a cluster sends in addition. */
const OF_CLUSTER = ["cluster|slots", "cluster|shards", "cluster|nodes", "cluster|info", "readonly", "asking"] as const;

/** Commands, and the keys that they may touch. */
interface Grant {
  readonly commands: readonly string[];
  readonly keys: readonly string[];
  /** What a command may do with the keys. Default: both. */
  readonly access?: "read" | "write";
}

/** The most used first: Redis checks one after the other. */
const COUNTING: readonly Grant[] = [
  { commands: ["hmget", "hincrby", "pexpire", "unlink"], keys: ["rl:{*", "cr:{*"] },
  { commands: ["sadd", "unlink"], keys: ["cr-dirty", "cr-load"] },
];
const OF_EVENTS: readonly Grant[] = [
  { commands: ["exists", "decrby", "unlink"], keys: ["events-room:{*"] },
  { commands: ["xadd"], keys: ["events"], access: "write" },
];

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
  const grants = store === "events" ? OF_EVENTS : [...COUNTING, ...OF_EVENTS, ...ofPolicy(gate)];
  const base = `${pattern(prefix)}:${pattern(workspaceId)}:`;
  const read = grants.filter(({ access }) => access === "read").flatMap(({ keys }) => keys);
  const others = grants.filter(({ access }) => access !== "read").flatMap(({ keys }) => keys);
  // A script names all its keys, so those are allowed together; what it does with each is checked by the grants.
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
    {
      commands: ["getrange", "hget", "hmget", "hstrlen", "xread", "xrevrange"],
      keys: [...RECORDS, policy],
      access: "read",
    },
    { commands: ["hset", "hdel", "pexpire", "unlink"], keys: [reports] },
    { commands: ["zadd", "zcard", "zcount", "zremrangebyrank", "pexpire", "unlink"], keys: [alive] },
  ];
}

function selector(base: string, { commands, keys, access }: Grant): string {
  const sign = access === undefined ? "~" : access === "read" ? "%R~" : "%W~";
  return `(${[...commands.map((name) => `+${name}`), ...keys.map((key) => `${sign}${base}${key}`)].join(" ")})`;
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

/** Escapes text so that a key pattern matches it literally. Redis takes a selector apart at spaces, quotes and parentheses. */
function pattern(text: string): string {
  if (text === "" || /[\s\p{Cc}"'()]/u.test(text))
    throw new Error(`${JSON.stringify(text)} cannot stand in a rule of an ACL`);
  return text.replace(/[\\*?[\]^]/g, (character) => `\\${character}`);
}
