import { join } from "node:path";
import { findBinary, findPart, isExecutable } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";
import { HELM, writeKubernetesModule } from "./kubernetes-build.ts";

const KUBERNETES_MINOR = 34;
const PACKAGE = "helm.sh/helm/v3";

const folder = () => join(cacheFolder(), `helm-${HELM}`);

/** Returns the path of Helm from the PATH, or built once from its Go module into the user's cache. */
export async function findHelm(): Promise<string> {
  return await findPart("Helm", "install helm, or Go 1.24 or newer, or python3 with venv, so that it can be built", [
    { name: "the PATH", attempt: () => findBinary(["helm"]) },
    { name: "the cache", attempt: built },
    { name: "Go build", attempt: buildHelm },
  ]);
}

async function built(): Promise<string | undefined> {
  const program = join(folder(), "helm");
  return (await isExecutable(program)) ? program : undefined;
}

async function buildHelm(): Promise<string> {
  const made = async () => ((await built()) === undefined ? undefined : folder());
  return join(
    await buildOnce({ what: `helm ${HELM}`, takes: "about a minute", folder: folder(), built: made, build }),
    "helm",
  );
}

async function build({ work, go }: Go): Promise<void> {
  await writeKubernetesModule({ go, work });
  const stamps = [
    `-X ${PACKAGE}/internal/version.version=v${HELM}`,
    // Kubernetes version for which Helm renders without a cluster.
    ...["pkg/chartutil", "pkg/lint/rules"].flatMap((where) => [
      `-X ${PACKAGE}/${where}.k8sVersionMajor=1`,
      `-X ${PACKAGE}/${where}.k8sVersionMinor=${KUBERNETES_MINOR}`,
    ]),
  ];
  await go(["build", "-o", join("bin", "helm"), "-ldflags", ["-s", "-w", ...stamps].join(" "), `${PACKAGE}/cmd/helm`]);
}
