import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { applyCrds } from "../../test/e2e/operator-world.ts";
import {
  createTestNamespace,
  KUBERNETES_START_MS,
  startKubernetes,
  type TestKubernetes,
} from "../../test/harness/kubernetes.ts";
import { COMMANDS } from "../commands.ts";
import { runCommand } from "../run-command.ts";

let cluster: TestKubernetes;
let namespace: string;
beforeAll(async () => {
  cluster = await startKubernetes();
  await applyCrds(cluster);
  ({ name: namespace } = await createTestNamespace(cluster));
  await write("enforced", [condition("Ready", "True"), condition("Enforced", "True"), condition("Stale", "False")], {
    pods: 3,
    updated: 3,
    unguarded: 0,
    maxStalenessMs: 12,
  });
}, KUBERNETES_START_MS);

const condition = (type: string, status: string, message = "", reason = "Test") => ({
  type,
  status,
  reason,
  message,
  lastTransitionTime: "2026-01-01T00:00:00Z",
  observedGeneration: 1,
});

async function write(name: string, conditions?: object[], dataPlane?: object): Promise<void> {
  const spec = { selector: { matchLabels: { app: name } }, api: { name }, target: { port: "http" } };
  const head = { apiVersion: "postern.dev/v1alpha1", kind: "ApiKeyPolicy", metadata: { name, namespace } };
  const run = async (args: string[], body: object) => {
    const ran = await cluster.kubectl([...args, "-f", "-"], JSON.stringify(body));
    expect(ran).toMatchObject({ exitCode: 0 });
  };
  await run(["apply"], { ...head, spec });
  if (conditions === undefined) return;
  await run(["apply", "--server-side", "--force-conflicts", "--subresource=status"], {
    ...head,
    status: { conditions, dataPlane },
  });
}

const status = (...args: string[]) => run("status", "--kubeconfig", cluster.kubeconfigPath, "-n", namespace, ...args);

const run = (...args: string[]) => runIn({}, ...args);

async function runIn(env: Record<string, string>, ...args: string[]) {
  const out: string[] = [];
  const notes: string[] = [];
  const io = { env, out: (line: string) => void out.push(line), note: (line: string) => void notes.push(line) };
  return { code: await runCommand(COMMANDS, args, io), out, notes };
}

test("postern status reads the user's kubeconfig by default, as kubectl does", async () => {
  const HOME = mkdtempSync(join(tmpdir(), "postern-home-"));
  onTestFinished(() => rmSync(HOME, { recursive: true }));
  expect((await runIn({ HOME }, "status", "-n", namespace)).notes.join()).toContain("set a kubeconfig file");
  mkdirSync(join(HOME, ".kube"));
  copyFileSync(cluster.kubeconfigPath, join(HOME, ".kube/config"));
  const { code, out } = await runIn({ HOME }, "status", "-n", namespace);
  expect([code, out.length]).toEqual([0, 2]);
  // A pod uses its ServiceAccount and has no kubeconfig.
  const inPod = await runIn({ HOME, KUBERNETES_SERVICE_HOST: "127.0.0.1" }, "status", "-n", namespace);
  expect(inPod).toMatchObject({ code: 1, out: [] });
});

test("postern status lists enforced policies and exits with 0", async () => {
  const { code, out } = await status("--json");
  expect(code).toBe(0);
  expect(JSON.parse(out[0] ?? "")).toMatchObject({
    policies: [
      {
        namespace,
        name: "enforced",
        ready: "True",
        enforced: "True",
        stale: "False",
        pods: 3,
        updated: 3,
        maxStalenessMs: 12,
        message: null,
      },
    ],
    hasMore: false,
  });
});

test("postern status exits with 0 for a Ready policy without pods", async () => {
  const none = condition("Enforced", "False", "No gate has reported this policy recently.", "NoPods");
  await write("idle", [condition("Ready", "True"), none]);
  const { code, out } = await status();
  expect(code).toBe(0);
  expect(out.find((line) => line.includes("idle"))).toContain("No gate has reported");
  await write("idle", [condition("Ready", "False", "The spec has faults."), none]);
  expect((await status()).code).toBe(1);
  await write("idle", [condition("Ready", "True"), none]);
});

test("postern status explains unenforced policies, shows missing conditions as Unknown, and exits with 1", async () => {
  await write("bypassed", [condition("Ready", "True"), condition("Enforced", "False", "2 pods have no gate.")], {
    pods: 3,
    updated: 1,
    unguarded: 2,
  });
  await write("young");
  const { code, out } = await status();
  expect(code).toBe(1);
  expect(out.find((line) => line.includes("bypassed"))).toMatch(
    /True +False +Unknown +3 +1 +[2-] +2 pods have no gate\./,
  );
  expect(out.find((line) => line.includes("young"))).toMatch(/young +Unknown +Unknown +Unknown +- +- +-/);
});

test("postern status shows Unknown for an edited policy until the operator has seen the edit", async () => {
  const patch = JSON.stringify({ spec: { mode: "Audit" } });
  await cluster.kubectl(["-n", namespace, "patch", "apikeypolicy", "enforced", "--type=merge", "-p", patch]);
  const { out } = await status("--json");
  const { policies } = JSON.parse(out[0] ?? "");
  expect(policies.find(({ name }: { name: string }) => name === "enforced")).toMatchObject({ enforced: "Unknown" });
});

test("postern status prints nothing for an empty namespace, and one line for an unreachable cluster", async () => {
  expect((await run("status", "--kubeconfig", cluster.kubeconfigPath, "-n", "nowhere")).code).toBe(0);
  const { code, notes } = await run("status", "--kubeconfig", "/nowhere");
  expect(code).not.toBe(0);
  expect(notes).toHaveLength(1);
});
