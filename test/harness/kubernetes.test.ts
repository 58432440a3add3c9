import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  startOwnKubernetes,
  type TestKubernetes,
  type TestNamespace,
} from "./kubernetes.ts";

let kubernetes: TestKubernetes;
let namespace: TestNamespace;

beforeAll(async () => {
  kubernetes = await startKubernetes();
  namespace = await createTestNamespace();
}, KUBERNETES_START_MS);
afterAll(() => namespace?.drop());

const crd = JSON.stringify({
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "harnesses.postern.test" },
  spec: {
    group: "postern.test",
    scope: "Namespaced",
    names: { plural: "harnesses", singular: "harness", kind: "Harness" },
    versions: [
      {
        name: "v1",
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                properties: { size: { type: "integer" } },
                "x-kubernetes-validations": [{ rule: "self.size < 10", message: "too large" }],
              },
            },
          },
        },
      },
    ],
  },
});
const harness = (name: string, size: number) =>
  JSON.stringify({ apiVersion: "postern.test/v1", kind: "Harness", metadata: { name }, spec: { size } });

test("test Kubernetes API is a real server of the built version", async () => {
  const { stdout } = await kubernetes.kubectl(["version", "-o", "json"]);
  const { serverVersion } = JSON.parse(stdout) as { serverVersion: { gitVersion: string; minor: string } };
  expect(serverVersion.gitVersion).toMatch(/^v1\.\d+\.\d+/);
});

test("test Kubernetes API stores custom resources and applies CRD rules", async () => {
  const in_ = ["-n", namespace.name];
  expect(await kubernetes.kubectl(["apply", "-f", "-"], crd)).toMatchObject({ exitCode: 0 });
  await kubernetes.kubectl(["wait", "--for=condition=Established", "crd/harnesses.postern.test", "--timeout=30s"]);
  expect(await kubernetes.kubectl([...in_, "apply", "-f", "-"], harness("small", 3))).toMatchObject({ exitCode: 0 });
  const refused = await kubernetes.kubectl([...in_, "apply", "-f", "-"], harness("large", 30));
  expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("too large") });
  const { stdout } = await kubernetes.kubectl([...in_, "get", "harnesses", "-o", "name"]);
  expect(stdout.trim()).toBe("harness.postern.test/small");
});

test("dedicated test Kubernetes API keeps its objects across a restart", async () => {
  const own = await startOwnKubernetes();
  try {
    expect((await own.kubectl(["get", "namespace", namespace.name])).stderr).toContain("NotFound");
    const mine = await createTestNamespace(own);
    await own.restartApiServer();
    expect(await own.kubectl(["get", "namespace", mine.name, "-o", "name"])).toMatchObject({
      stdout: `namespace/${mine.name}\n`,
    });
  } finally {
    await own.stop();
  }
}, 120_000);
