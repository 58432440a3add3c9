import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { sidecar } from "../../cli/commands/sidecar.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestNamespace,
} from "../harness/kubernetes.ts";

const FILE = resolve(import.meta.dirname, "../../examples/gateways/kubernetes.yaml");

let namespace: TestNamespace;
beforeAll(async () => {
  namespace = await createTestNamespace();
}, KUBERNETES_START_MS);
afterAll(() => namespace?.drop());

test("a Kubernetes API server takes the example, in a namespace that asks for what Pod Security calls restricted", async () => {
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

test("it sets nothing that the gate does not read", async () => {
  const [deployment] = parseAllDocuments(await readFile(FILE, "utf8")).map((one) => one.toJS());
  const [gate] = deployment.spec.template.spec.containers;
  const env: ReadonlyArray<{ name: string; value?: string }> = gate.env;
  const options = new Set(Object.values(sidecar.options).map((option) => option.env));
  const isRead = (name: string): boolean => options.has(name) || env.some(({ value }) => value?.includes(`$(${name})`));
  expect(env.map(({ name }) => name).filter((name) => !isRead(name))).toEqual([]);
});
