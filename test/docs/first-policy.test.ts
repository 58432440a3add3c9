import { afterAll, beforeAll, expect, test } from "vitest";
import { gateOf, openWebhookWorld, type WebhookWorld } from "../e2e/webhook-world.ts";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { waitFor } from "../harness/wait.ts";
import { blocksOf, wordsOf } from "./page.ts";

/* docs/first-policy.md as written, on a real API server that calls a real operator; only no node runs the pods. */

const page = blocksOf("first-policy.md");
const blocks = (wanted: string): string[] => page.filter(({ language }) => language === wanted).map(({ text }) => text);

let world: WebhookWorld;
beforeAll(async () => {
  world = await openWebhookWorld();
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

async function kubectl(args: readonly string[], stdin?: string): Promise<string> {
  const { exitCode, stdout, stderr } = await world.cluster.kubectl([...args], stdin);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout;
}

/** The app of the page, as its team has it before. */
const DEPLOYMENT = {
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "orders", namespace: "shop" },
  spec: {
    selector: { matchLabels: { app: "orders" } },
    template: {
      metadata: { labels: { app: "orders" } },
      // The admission plugin that would set the account is off here, because no controller makes it.
      spec: {
        serviceAccountName: "default",
        containers: [{ name: "app", image: "orders:1", ports: [{ name: "http", containerPort: 8080 }] }],
      },
    },
  },
};

test("first policy page leads to gated pods and a key in a Secret", async () => {
  const operator = await world.startOperator();
  await kubectl(["create", "namespace", "shop"]);
  await kubectl(["apply", "-f", "-"], JSON.stringify(DEPLOYMENT));
  const [policy = "", key = ""] = blocks("yaml");
  await kubectl(["apply", "-f", "-"], policy);

  const templateOf = async () =>
    JSON.parse(await kubectl(["-n", "shop", "get", "deploy", "orders", "-o", "json"])).spec.template;
  const podOf = async () => {
    const { metadata, spec } = await templateOf();
    return await world.create("shop", { metadata: { ...metadata, generateName: "orders-" }, spec });
  };
  expect((await podOf()).pod.spec.initContainers).toBeUndefined();
  const [patch = "", rollout = "", wait = ""] = blocks("sh").flatMap((text) => text.trim().split("\n"));
  await kubectl(wordsOf(patch).slice(1));
  const gate = await waitFor("a pod with a gate", async () => {
    const { pod, message } = await podOf();
    if (message !== "") throw new Error(message);
    return gateOf(pod);
  });
  expect(gate).toMatchObject({
    name: "postern-gate",
    ports: expect.arrayContaining([expect.objectContaining({ name: "http" })]),
  });

  // Without a node neither comes true, but both know what they wait for.
  for (const [line, says] of [
    [rollout, /Waiting for deployment|timed out/],
    [wait.replace("60s", "1s"), /timed out waiting for the condition on apikeypolicies\/orders/],
  ] as const) {
    const args = [...wordsOf(line).slice(1), ...(line === rollout ? ["--timeout=1s"] : [])];
    const { stdout, stderr } = await world.cluster.kubectl(args);
    expect(`${stdout}${stderr}`).toMatch(says);
  }

  await kubectl(["apply", "-f", "-"], key);
  await waitFor(
    "the key",
    async () =>
      (await kubectl(["-n", "shop", "get", "secret", "orders-client-key", "-o", "name", "--ignore-not-found"])) !== "",
  );
  await operator.close();
}, 180_000);
