import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findPart } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";

/* CRDs of other projects as published in their Go modules. */

interface Published {
  readonly module: string;
  readonly folder: string;
  readonly files: readonly string[];
}

/** Kinds that the chart can use. */
const OF_CHART: readonly Published[] = [
  {
    module: "github.com/prometheus-operator/prometheus-operator@v0.83.0",
    folder: "example/prometheus-operator-crd",
    files: ["servicemonitors", "podmonitors", "prometheusrules"].map((name) => `monitoring.coreos.com_${name}.yaml`),
  },
  {
    module: "github.com/cert-manager/cert-manager@v1.21.2",
    folder: "deploy/crds",
    files: ["cert-manager.io_certificates.yaml", "cert-manager.io_issuers.yaml"],
  },
];

/** Kinds that the gateway examples use. */
const OF_GATEWAYS: readonly Published[] = [
  {
    module: "github.com/envoyproxy/gateway@v1.9.1",
    folder: "charts/gateway-helm/charts/crds/crds",
    files: ["gatewayapi-crds.yaml", "generated/gateway.envoyproxy.io_securitypolicies.yaml"],
  },
  {
    module: "istio.io/api@v1.31.1",
    folder: "kubernetes",
    files: ["customresourcedefinitions.gen.yaml"],
  },
  {
    module: "github.com/projectcontour/contour@v1.33.8",
    folder: "examples/contour",
    files: ["01-crds.yaml"],
  },
  {
    module: "github.com/traefik/traefik/v3@v3.7.13",
    folder: "docs/content/reference/dynamic-configuration",
    files: ["traefik.io_middlewares.yaml", "traefik.io_ingressroutes.yaml"],
  },
];

const FILE = "crds.yaml";

/** Returns the path of a file with the CRDs of the Prometheus operator and cert-manager that the chart can use. */
export const findForeignCrds = (): Promise<string> => find(OF_CHART, "foreign-crds-1");

/** Returns the path of a file with the CRDs of Envoy Gateway (with the Gateway API), Istio, Contour and Traefik. */
export const findGatewayCrds = (): Promise<string> => find(OF_GATEWAYS, "gateway-crds-1");

async function find(published: readonly Published[], name: string): Promise<string> {
  const folder = join(cacheFolder(), name);
  const there = async () => ((await readFile(join(folder, FILE)).catch(() => undefined)) ? folder : undefined);
  const build = (tools: Go) => collect(published, tools);
  const found = await findPart("CRDs of other projects", "install Go 1.24 or newer, or python3 with venv", [
    { name: "the cache", attempt: there },
    {
      name: "Go modules",
      attempt: () => buildOnce({ what: "a file of CRDs", takes: "about a minute", folder, built: there, build }),
    },
  ]);
  return join(found, FILE);
}

async function collect(published: readonly Published[], { work, go }: Go): Promise<void> {
  const texts: string[] = [];
  for (const { module, folder, files } of published) {
    const { Dir } = JSON.parse(await go(["mod", "download", "-json", module])) as { Dir: string };
    for (const file of files) texts.push(await readFile(join(Dir, folder, file), "utf8"));
  }
  await writeFile(join(work, "bin", FILE), texts.join("\n---\n"));
}
