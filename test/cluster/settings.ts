/*
 * What the suite is told about the cluster that it works on, by environment variables. It installs and deletes in namespaces of its own; of
 * objects without a namespace it leaves the CRDs until its end. Do not give it a cluster in which others use Postern.
 */

export interface Release {
  readonly tag: string;
  /** The folder or archive of its chart. */
  readonly chart: string;
}

export interface Settings {
  /** A kubeconfig of a cluster administrator. */
  readonly kubeconfig: string;
  /** Where the images are, with a slash at the end; empty for names without a registry. */
  readonly registry: string;
  readonly tag: string;
  /** The release that is installed first and then upgraded; undefined: the upgrade is from the same one. */
  readonly previous: Release | undefined;
  readonly postgresImage: string;
  readonly redisImage: string;
}

/** Throws when something necessary is not said. */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const required = (name: string) => {
    const value = env[name];
    if (!value) throw new Error(`set ${name}; test/cluster/README.md says what it is`);
    return value;
  };
  return {
    kubeconfig: required("KUBECONFIG"),
    registry: env.E2E_REGISTRY ?? "",
    tag: required("E2E_TAG"),
    previous: env.E2E_PREVIOUS_TAG ? { tag: env.E2E_PREVIOUS_TAG, chart: required("E2E_PREVIOUS_CHART") } : undefined,
    postgresImage: env.E2E_POSTGRES_IMAGE || "postgres:18",
    redisImage: env.E2E_REDIS_IMAGE || "redis:7",
  };
}
