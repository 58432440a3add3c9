import type { Cluster } from "./cluster.ts";
import type { Release, Settings } from "./settings.ts";

/* The release that the suite works with. */

export const RELEASE = "postern";
export const CLUSTER_NAME = "e2e";
/** The release of this checkout. */
export const present = ({ tag }: Settings): Release => ({ tag, chart: "charts/postern" });

export interface Place {
  readonly cluster: Cluster;
  readonly settings: Settings;
  /** The namespace of the release. */
  readonly namespace: string;
}

/** Installs or upgrades; `--wait` until all is ready. */
export async function install(
  place: Place,
  { tag, chart }: Release,
  more: Readonly<Record<string, string>> = {},
): Promise<void> {
  const { cluster, settings, namespace } = place;
  const values = {
    "image.registry": settings.registry,
    "image.tag": tag,
    "dev.enabled": "true",
    "dev.postgres.image": settings.postgresImage,
    "dev.redis.image": settings.redisImage,
    "operator.clusterName": CLUSTER_NAME,
    ...more,
  };
  const set = Object.entries(values).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
  const command = ["upgrade", "--install", RELEASE, chart, "-n", namespace, "--create-namespace", ...set];
  await cluster.helm([...command, "--wait", "--wait-for-jobs", "--timeout", "8m"]);
}

/** The CRDs that are in the cluster, as `customresourcedefinition.…/<name>`. */
export const ourCrds = async (cluster: Cluster): Promise<string[]> =>
  (await cluster.kubectl(["get", "crd", "-o", "name"])).split("\n").filter((name) => name.endsWith(".postern.dev"));

/** Runs a command of the api-server's image in one of its pods, and returns what `--json` printed. */
export async function administer<T>({ cluster, namespace }: Place, args: readonly string[]): Promise<T> {
  const pod = ["-n", namespace, "exec", `deploy/${RELEASE}-api-server`, "--"];
  return JSON.parse(await cluster.kubectl([...pod, "node", "/app/main.mjs", ...args, "--json"])) as T;
}

export const imageOf = ({ registry }: Settings, part: string, tag: string): string =>
  `${registry === "" ? "" : `${registry.replace(/\/$/, "")}/`}postern-${part}:${tag}`;
