import { KNOWN_VARIABLES } from "./known-variables.ts";

/*
 * The variables of the environment that begin with POSTERN_. Kubernetes sets some of them by itself: for a Service `postern-webhook` each
 * pod of its namespace gets POSTERN_WEBHOOK_PORT=tcp://10.0.0.7:443 and others, which are not meant for us.
 */

type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = "POSTERN_";
/** What is added to the name of a Service, see Kubernetes' kubelet `envvars.FromServices`. */
const OF_A_SERVICE =
  /_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** Whether Kubernetes has set it, for a Service of the pod's namespace. */
export function isOfService(name: string, env: Environment): boolean {
  const service = name.replace(OF_A_SERVICE, "");
  if (service === name || env[`${service}_SERVICE_HOST`] === undefined) return false;
  // POSTERN_WEBHOOK_PORT is a name of ours, too. Ours is a number.
  return name !== `${service}_PORT` || (env[name] ?? "").includes("://");
}

/** The value of a variable; undefined when it is empty, or of a Service. */
export function readVariable(name: string, env: Environment): string | undefined {
  const value = env[name];
  return value === "" || isOfService(name, env) ? undefined : value;
}

export interface UnknownVariable {
  readonly name: string;
  /** The known name that is most like it, if one is like it at all. */
  readonly nearest: string | undefined;
}

/** The variables that begin with POSTERN_ and that no command of this release reads: mostly names that are misspelt. */
export function findUnknownVariables(env: Environment): UnknownVariable[] {
  return Object.keys(env)
    .filter((name) => name.startsWith(PREFIX) && !KNOWN.has(name) && !isOfService(name, env))
    .sort()
    .map((name) => ({ name, nearest: nearestTo(name) }));
}

const KNOWN: ReadonlySet<string> = new Set(KNOWN_VARIABLES);
/** More changes than this make another name. */
const CHANGES_MAX = 4;

function nearestTo(name: string): string | undefined {
  // POSTERN_REDIS_URL: some names have no such beginning.
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

/** How many letters must be inserted, removed or replaced to make one text of the other (Levenshtein). */
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
