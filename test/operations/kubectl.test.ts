import { globSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { render } from "../chart/render.ts";
import { wordsOf } from "../docs/page.ts";
import { guardedPod, openWebhookWorld, SECRET, type WebhookWorld } from "../e2e/webhook-world.ts";
import { KUBERNETES_START_MS } from "../harness/kubernetes.ts";
import { findHelm } from "../harness/parts/helm.ts";
import { waitFor } from "../harness/wait.ts";

/*
 * The kubectl commands of docs/operations on a real API server with the objects of the chart. No pod runs, so commands that reach into a
 * pod are checked for existing names only.
 */

const ROOT = resolve(import.meta.dirname, "../..");
const REACH_INTO_PODS = /^kubectl -n \S+ (?:logs|port-forward|exec|wait pod\/\S+) |\| kubectl -n \S+ exec /;

const pages = globSync("docs/operations/*.md", { cwd: ROOT });
/** The documented commands with names of this test for those in capitals. */
const commands = [
  ...new Set(
    pages.flatMap((page) =>
      [...readFileSync(join(ROOT, page), "utf8").matchAll(/^ *(kubectl [^#\n]*)|`(kubectl [^`]+)`/gm)].map(
        ([, line, inline]) => (line ?? inline ?? "").trim(),
      ),
    ),
  ),
];

let world: WebhookWorld;
const rendered: Awaited<ReturnType<typeof render>> = [];
beforeAll(async () => {
  world = await openWebhookWorld();
  await findHelm();
  const values = {
    ...{ operator: { clusterName: "c" }, database: { existingSecret: "d" }, redis: { existingSecret: "r" } },
    ...{ crds: { enabled: false }, injection: { enabled: false } },
  };
  rendered.push(...(await render(values)));
  await kubectl(["create", "namespace", "postern"]);
  await kubectl(["create", "secret", "generic", SECRET, "-n", "postern"]);
  for (const object of rendered) {
    await kubectl(["apply", "-n", object.metadata.namespace ?? "postern", "-f", "-"], JSON.stringify(object));
  }
  // kubectl caches the API resources.
  await kubectl(["api-resources"]);
}, KUBERNETES_START_MS);
afterAll(() => world?.close());

async function kubectl(args: readonly string[], stdin?: string): Promise<string> {
  const { exitCode, stdout, stderr } = await world.cluster.kubectl([...args], stdin);
  if (exitCode !== 0) throw new Error(`kubectl ${args.join(" ")}: ${stderr}`);
  return stdout + stderr;
}

const runnable = commands.filter(
  (command) => !REACH_INTO_PODS.test(command) && !/^kubectl (?:postern|auth|describe$|logs$)/.test(command),
);

test("operations pages contain kubectl commands", () => {
  expect(runnable.length).toBeGreaterThan(6);
  expect(commands.length - runnable.length).toBeGreaterThan(5);
});

test.each(runnable)("documented kubectl command works: %s", async (command) => {
  const given = command.replace("NAMESPACE", "postern").replace("deployment/NAME", "deployment/postern-operator");
  await kubectl(wordsOf(given).slice(1));
});

test("documented pod selectors use existing labels", () => {
  const chosen = commands.filter((command) => REACH_INTO_PODS.test(command) && command.includes(" -l "));
  expect(chosen.length).toBeGreaterThan(1);
  const labels = rendered
    .filter(({ kind }) => kind === "Deployment")
    .flatMap(({ spec }) => Object.entries(spec.template.metadata.labels).map(([name, value]) => `${name}=${value}`));
  for (const command of chosen) expect(labels, command).toContain(/ -l (\S+)/.exec(command)?.[1]);
});

test("documented deployments and probe ports exist", () => {
  const reached = commands.filter((command) => REACH_INTO_PODS.test(command) && command.includes("deployment/"));
  expect(reached.length).toBeGreaterThan(1);
  for (const command of reached) {
    const [, name = "", port] = /deployment\/(\S+)(?: (\d+))?/.exec(command) ?? [];
    const deployment = rendered.find(({ kind, metadata }) => kind === "Deployment" && metadata.name === name);
    expect(deployment, command).toBeDefined();
    const ports = deployment?.spec.template.spec.containers[0].ports as { name: string; containerPort: number }[];
    if (port !== undefined) expect(ports, command).toContainEqual({ name: "admin", containerPort: Number(port) });
  }
});

test("documented reset of the webhook Secret recreates the certificate", async () => {
  const operator = await world.startOperator({ lifetimes: { authorityMs: 600_000, servingMs: 30_000 } });
  const shop = await world.namespace();
  await world.policy(shop, "orders");
  const admitted = () =>
    waitFor("a guarded pod to be admitted", async () => (await world.create(shop, guardedPod())).pod !== undefined, {
      deadlineMs: 60_000,
    });
  await admitted();
  const read = (path: string) => kubectl(["get", "secret", SECRET, "-n", "default", "-o", `jsonpath={${path}}`]);
  const before = await read(".data.ca\\.crt");
  await kubectl(["-n", "default", "label", "secret", SECRET, "kept=yes"]);
  const emptying = commands.find((command) => command.includes(` patch secret ${SECRET} `)) ?? "";
  await kubectl(wordsOf(emptying.replace("-n postern", "-n default")).slice(1));
  await waitFor("another authority", async () => ![before, ""].includes(await read(".data.ca\\.crt")), {
    deadlineMs: 60_000,
  });
  await admitted();
  // The operator updates the Secret in place and keeps the labels that its creator has set.
  expect(await read(".metadata.labels.kept")).toBe("yes");
  await operator.close();
}, 150_000);

/** Returns the anchor that GitHub generates for a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-");

test("operations page links point to existing headings", () => {
  const missing = pages.flatMap((page) =>
    [...readFileSync(join(ROOT, page), "utf8").matchAll(/\]\(([^)#\s:]*)#([^)]+)\)/g)].flatMap(
      ([, target = "", anchor = ""]) => {
        const file = target === "" ? join(ROOT, page) : resolve(ROOT, page, "..", target);
        const headings = [...readFileSync(file, "utf8").matchAll(/^#+ (.*)$/gm)].map(([, text = ""]) => anchorOf(text));
        return headings.includes(anchor) ? [] : [`${page}: ${target}#${anchor}`];
      },
    ),
  );
  expect(missing).toEqual([]);
});
