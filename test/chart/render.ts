import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments, stringify } from "yaml";
import { findHelm } from "../harness/parts/helm.ts";

const run = promisify(execFile);
const CHART = resolve(import.meta.dirname, "../../charts/postern");

export interface Rendered {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: tests reach into objects of any kind.
  readonly [part: string]: any;
}

async function helm(args: readonly string[], values: object): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "postern-chart-"));
  try {
    const file = join(folder, "values.yaml");
    await writeFile(file, stringify(values));
    const { stdout } = await run(await findHelm(), [...args, "--values", file], { maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const rendered = new Map<string, Promise<Rendered[]>>();

/** Renders the chart, once per test file for equal values. Throws Helm's error message if it rejects them. */
export function render(values: object, namespace = "postern"): Promise<Rendered[]> {
  const id = JSON.stringify([namespace, values]);
  const found = rendered.get(id) ?? renderOnce(values, namespace);
  rendered.set(id, found);
  return found;
}

async function renderOnce(values: object, namespace: string): Promise<Rendered[]> {
  const text = await helm(["template", "postern", CHART, "--namespace", namespace], values);
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null);
}

/** Returns the output of `helm lint`; throws if it finds an error. */
export const lint = (values: object): Promise<string> => helm(["lint", CHART, "--strict"], values);

/** Renders a new release with access to a cluster, without installing. Throws Helm's error message if it fails. */
export async function renderIn(kubeconfig: string, release: string, values: object): Promise<string> {
  const command = ["install", release, CHART, "--namespace", release, "--kubeconfig", kubeconfig, "--dry-run=server"];
  return await helm(command, { crds: { enabled: false }, ...values });
}
