import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isExecutable } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";
import { say } from "./say.ts";

// The modules of Kubernetes 1.34.2 are published as v0.34.2, and it uses etcd client 3.6.4.
const KUBERNETES = "1.34.2";
const STAGING = "v0.34.2";
const ETCD = "v3.6.4";
/** The last version with the same client libraries, so that they are compiled once. */
export const HELM = "3.19.5";

const VERSION_PACKAGE = "k8s.io/component-base/version";
const PROGRAMS = [
  { name: "etcd", package: "go.etcd.io/etcd/server/v3" },
  { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver" },
  { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl" },
];

const folder = () => join(cacheFolder(), `kube-${KUBERNETES}`);

/** Returns the folder of the programs if they have been built. */
export async function builtKubernetes(): Promise<string | undefined> {
  const there = await Promise.all(PROGRAMS.map(({ name }) => isExecutable(join(folder(), name))));
  return there.every(Boolean) ? folder() : undefined;
}

/** Builds kube-apiserver, etcd and kubectl from their Go modules into the user's cache: about four minutes, once. Returns the folder. */
export const buildKubernetes = (): Promise<string> =>
  buildOnce({
    what: `kube-apiserver ${KUBERNETES}, etcd and kubectl`,
    takes: "about 4 minutes",
    folder: folder(),
    built: builtKubernetes,
    build,
  });

async function build({ go, work }: Go): Promise<void> {
  await writeKubernetesModule({ go, work });
  const [major, minor] = KUBERNETES.split(".");
  const version = { gitVersion: `v${KUBERNETES}`, gitMajor: major, gitMinor: minor };
  const stamps = Object.entries(version).map(([name, value]) => `-X ${VERSION_PACKAGE}.${name}=${value}`);
  const linkerFlags = ["-s", "-w", ...stamps].join(" ");
  for (const program of PROGRAMS) {
    const startedAt = performance.now();
    await go(["build", "-o", join("bin", program.name), "-ldflags", linkerFlags, program.package]);
    say(`built ${program.name} in ${Math.round((performance.now() - startedAt) / 1000)} s`);
  }
}

/**
 * Writes a go.mod for the programs of Kubernetes and Helm: with the same versions of all dependencies, the packages that both use come from
 * Go's build cache.
 *
 * The go.mod of Kubernetes replaces its staging modules (v0.0.0) by folders of its repository; this one names the published versions. It repeats
 * the language version and debug settings because only those of the main module apply.
 */
export async function writeKubernetesModule({ go, work }: Go): Promise<void> {
  const downloaded = await go(["mod", "download", "-json", `k8s.io/kubernetes@v${KUBERNETES}`], { GOFLAGS: "" });
  const { GoMod } = JSON.parse(downloaded) as { GoMod: string };
  const kubernetesModule = await readFile(GoMod, "utf8");
  const settings = [...kubernetesModule.matchAll(/^(?:go|godebug) .*$/gm)].map(([line]) => line);
  const staging = [...kubernetesModule.matchAll(/^\s*(k8s\.io\/\S+) v0\.0\.0$/gm)].map(([, name]) => name);
  const lines = [
    "module postern.test/kubernetes",
    ...settings,
    `require k8s.io/kubernetes v${KUBERNETES}`,
    `require go.etcd.io/etcd/server/v3 ${ETCD}`,
    `require helm.sh/helm/v3 v${HELM}`,
    ...staging.map((name) => `replace ${name} => ${name} ${STAGING}`),
    "",
  ];
  await writeFile(join(work, "go.mod"), lines.join("\n"));
}
