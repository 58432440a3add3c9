import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { sidecar } from "../../cli/commands/sidecar.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestNamespace,
} from "../harness/kubernetes.ts";
import { findGatewayCrds } from "../harness/parts/foreign-crds.ts";

const EXAMPLES = resolve(import.meta.dirname, "../../examples/gateways/kubernetes");
const FILE = resolve(import.meta.dirname, "../../examples/gateways/kubernetes.yaml");

let namespace: TestNamespace;
beforeAll(async () => {
  namespace = await createTestNamespace();
}, KUBERNETES_START_MS);
afterAll(() => namespace?.drop());

test("Kubernetes accepts the gateway example in a restricted namespace", async () => {
  const { kubectl } = await startKubernetes();
  const level = "pod-security.kubernetes.io/enforce=restricted";
  const warn = "pod-security.kubernetes.io/warn=restricted";
  expect((await kubectl(["label", "namespace", namespace.name, level, warn])).exitCode).toBe(0);
  const text = await readFile(FILE, "utf8");
  const args = ["apply", "-n", namespace.name, "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"];
  const { stdout, stderr, exitCode } = await kubectl(args, text);
  expect(stderr).toBe("");
  expect(exitCode).toBe(0);
  expect(stdout.trim().split("\n")).toHaveLength(parseAllDocuments(text).length);
});

describe("the examples of gateways in Kubernetes", () => {
  beforeAll(async () => {
    const { kubectl } = await startKubernetes();
    const crds = await findGatewayCrds();
    const only = parseAllDocuments(await readFile(crds, "utf8"))
      .map((one) => one.toJS())
      .filter((one) => one?.kind === "CustomResourceDefinition");
    const items = JSON.stringify({ apiVersion: "v1", kind: "List", items: only });
    for (const args of [
      ["apply", "--server-side", "--force-conflicts", "-f", "-"],
      ["wait", "--for=condition=Established", "--timeout=60s", "-f", "-"],
    ]) {
      const { exitCode, stderr } = await kubectl(args, items);
      if (exitCode !== 0) throw new Error(stderr);
    }
  }, 900_000);

  const applied = async (text: string) => {
    const { kubectl } = await startKubernetes();
    const args = ["apply", "-n", namespace.name, "--dry-run=server", "--validate=strict", "-o", "name", "-f", "-"];
    return kubectl(args, text);
  };

  test.each([
    { file: "envoy-gateway.yaml", objects: 2 },
    { file: "istio.yaml", objects: 2 },
    { file: "contour.yaml", objects: 3 },
    { file: "traefik.yaml", objects: 3 },
    { file: "ingress-nginx.yaml", objects: 2 },
  ])("gateway example $file matches the published CRD schemas", async ({ file, objects }) => {
    const { stdout, stderr } = await applied(await readFile(resolve(EXAMPLES, file), "utf8"));
    expect(stderr).toBe("");
    expect(stdout.trim().split("\n")).toHaveLength(objects);
  });

  test.each([
    { file: "envoy-gateway.yaml", word: "failOpen" },
    { file: "istio.yaml", word: "configPatches" },
    { file: "contour.yaml", word: "extensionRef" },
    { file: "traefik.yaml", word: "authResponseHeadersRegex" },
  ])("gateway example $file with an invalid field is detected", async ({ file, word }) => {
    const text = await readFile(resolve(EXAMPLES, file), "utf8");
    expect(text).toContain(word);
    expect((await applied(text.replace(word, `${word}s`))).stderr).toMatch(/unknown field|Invalid|Required/);
  });

  test("Traefik CRD example equals its tested file configuration", async () => {
    const [postern, withoutKeys] = parseAllDocuments(await readFile(resolve(EXAMPLES, "traefik.yaml"), "utf8")).map(
      (one) => one.toJS().spec,
    );
    const own = parse(await readFile(resolve(EXAMPLES, "../traefik.yaml"), "utf8")).http.middlewares;
    const { address: _, ...asked } = postern.forwardAuth;
    expect(own.postern.forwardAuth).toMatchObject(asked);
    expect(withoutKeys.headers).toEqual(own["without-keys"].headers);
  });
});

test("Kubernetes gateway example sets only options that a gate supports", async () => {
  const [deployment] = parseAllDocuments(await readFile(FILE, "utf8")).map((one) => one.toJS());
  const [gate] = deployment.spec.template.spec.containers;
  const env: ReadonlyArray<{ name: string; value?: string }> = gate.env;
  const options = new Set(Object.values(sidecar.options).map((option) => option.env));
  const isRead = (name: string): boolean => options.has(name) || env.some(({ value }) => value?.includes(`$(${name})`));
  expect(env.map(({ name }) => name).filter((name) => !isRead(name))).toEqual([]);
});
