import { KNOWN_VARIABLES } from "./known-variables.ts";

/*
 * Reads environment variables with the prefix POSTERN_. Kubernetes sets variables with this prefix as well: a Service `postern-webhook`
 * adds POSTERN_WEBHOOK_PORT=tcp://10.0.0.7:443 and others to each pod of its namespace. The variables of Services are ignored.
 */

type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "POSTERN_";
/** Suffixes of the variables of a Service, as in kubelet's `envvars.FromServices`. */
const OF_A_SERVICE =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** Returns whether Kubernetes set the variable for a Service of the pod's namespace. */
export function isOfService(name: string, env: Environment): boolean {
  const service = name.replace(OF_A_SERVICE, "");
  if (service === name || env[`${service}_SERVICE_HOST`] === undefined) return false;
  // A plain number in POSTERN_WEBHOOK_PORT was set by the user, because Postern has a variable with this name. Kubernetes would set a URL.
  return name !== `${service}_PORT` || (env[name] ?? "").includes("://");
}

/** Returns the value of a variable; `undefined` if it is empty or belongs to a Service. */
export function readVariable(name: string, env: Environment): string | undefined {
  const value = env[name];
  return value === "" || isOfService(name, env) ? undefined : value;
}

export interface UnknownVariable {
  readonly name: string;
  /** The most similar known name, if any. */
  readonly nearest: string | undefined;
}

/** Returns the variables with the prefix POSTERN_ that no command of this version reads; most are misspelled names. */
export function findUnknownVariables(env: Environment): UnknownVariable[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !KNOWN.has(name) && !isOfService(name, env))
    .sort()
    .map((name) => ({ name, nearest: nearestTo(name) }));
}

const KNOWN: ReadonlySet<string> = new Set(KNOWN_VARIABLES);
/** Maximum edit distance to a similar name. */
const CHANGES_MAX = 4;

function nearestTo(name: string): string | undefined {
  // Compares the name without the prefix too: a user who sets POSTERN_REDIS_URL probably means REDIS_URL.
  const bare = name.slice(PREFIX.length);
  if (KNOWN.has(bare)) return bare;
  let nearest: { known: string; changes: number } | undefined;
  for (const known of KNOWN_VARIABLES) {
    const changes = changesBetween(name.slice(0, 100), known);
    if (changes <= CHANGES_MAX && changes < (nearest?.changes ?? Number.POSITIVE_INFINITY))
      nearest = { known, changes };
  }
  return nearest?.known;
}

function changesBetween(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
