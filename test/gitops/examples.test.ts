import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { type Rendered, render } from "../chart/render.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
} from "../harness/kubernetes.ts";

import { findHelm } from "../harness/parts/helm.ts";
import { checkFlux, findChecker } from "./judge.ts";

/* The examples of Flux and Kustomize are what Flux and Kustomize take, and what they make is what the Kubernetes API takes. */

const EXAMPLES = resolve(import.meta.dirname, "../../examples/gitops");

let cluster: TestKubernetes;
let namespace: Awaited<ReturnType<typeof createTestNamespace>>;
beforeAll(async () => {
  await Promise.all([findHelm(), findChecker()]);
  cluster = await startKubernetes();
  namespace = await createTestNamespace(cluster);
}, KUBERNETES_START_MS);
afterAll(() => namespace?.drop());

const documentsOf = (text: string) => parseAllDocuments(text).map((document) => document.toJS() as Rendered);

test("Flux example uses only known fields and existing chart values", async () => {
  const objects = documentsOf(readFileSync(resolve(EXAMPLES, "flux/release.yaml"), "utf8"));
  await checkFlux(objects);
  const release = objects.find(({ kind }) => kind === "HelmRelease");
  const deployments = (await render(release?.spec.values)).filter(({ kind }) => kind === "Deployment");
  expect(deployments.map(({ metadata }) => metadata.name).sort()).toEqual(["postern-api-server", "postern-operator"]);
  // What they refer to among themselves is there.
  const sources = objects.filter(({ kind }) => kind === "GitRepository").map(({ metadata }) => metadata.name);
  const referred = objects.flatMap(({ spec }) => [spec.sourceRef?.name, spec.chart?.spec.sourceRef.name]);
  expect(referred.filter((name) => name !== undefined).sort()).toEqual(sources.sort());
});

test("unknown field in the Flux example is detected", async () => {
  const [repository] = documentsOf(readFileSync(resolve(EXAMPLES, "flux/release.yaml"), "utf8"));
  await expect(checkFlux([{ ...repository, spec: { ...repository?.spec, urls: [] } }])).rejects.toThrow(/"urls"/);
});

test("Kustomize example output is accepted by the Kubernetes API", async () => {
  const folder = resolve(EXAMPLES, "kustomize");
  const made = await cluster.kubectl(["kustomize", "--enable-helm", "--helm-command", await findHelm(), folder]);
  expect(made).toMatchObject({ exitCode: 0 });
  const objects = documentsOf(made.stdout);
  expect(objects.filter(({ kind }) => kind === "CustomResourceDefinition")).toHaveLength(5);
  // In a namespace that is there: the example says `postern`.
  const here = made.stdout.replaceAll("namespace: postern\n", `namespace: ${namespace.name}\n`);
  const applied = await cluster.kubectl(
    ["apply", "--server-side", "--dry-run=server", "--force-conflicts", "-f", "-"],
    here,
  );
  // Another test may have applied the CRDs to the shared cluster by client-side apply, of which kubectl warns.
  const stderr = applied.stderr.replaceAll(
    /^Warning: failed to migrate kubectl\.kubernetes\.io\/last-applied.*\n/gm,
    "",
  );
  expect({ exitCode: applied.exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
});
