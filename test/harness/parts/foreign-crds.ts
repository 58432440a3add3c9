import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findPart } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";

/** CRDs of other projects, as they publish them in their Go modules. */
const CRDS = {
  monitoring: {
    module: "github.com/prometheus-operator/prometheus-operator@v0.83.0",
    folder: "example/prometheus-operator-crd",
    files: ["servicemonitors", "podmonitors", "prometheusrules"].map((name) => `monitoring.coreos.com_${name}.yaml`),
  },
  certificates: {
    module: "github.com/cert-manager/cert-manager@v1.21.2",
    folder: "deploy/crds",
    files: ["cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml"],
  },
};

const folder = () => join(cacheFolder(), "foreign-crds-1");
const FILE = "crds.yaml";

/** Returns the path of one file that has the CRDs of the Prometheus operator and of cert-manager that our chart can use. */
export async function findForeignCrds(): Promise<string> {
  const found = await findPart("CRDs of other projects", "install Go 1.24 or newer, or python3 with venv", [
    { name: "the cache", attempt: there },
    { name: "Go modules", attempt: () => buildOnce({ what: "CRDs", folder: folder(), built: there, build }) },
  ]);
  return join(found, FILE);
}

const there = async () => ((await readFile(join(folder(), FILE)).catch(() => undefined)) ? folder() : undefined);

async function build({ work, go }: Go): Promise<void> {
  const texts: string[] = [];
  for (const { module, folder, files } of Object.values(CRDS)) {
    const { Dir } = JSON.parse(await go(["mod", "download", "-json", module])) as { Dir: string };
    for (const file of files) texts.push(await readFile(join(Dir, folder, file), "utf8"));
  }
  await writeFile(join(work, "bin", FILE), texts.join("\n---\n"));
}
