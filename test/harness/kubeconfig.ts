import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { parse, stringify } from "yaml";
import type { TestKubernetes } from "./kubernetes.ts";

interface Changes {
  /** Members of the user, such as `as` (who it acts as) or `token`. */
  readonly user?: Readonly<Record<string, string>>;
  /** In place of the administrator's certificate, and not beside it. */
  readonly replacesUser?: boolean;
  readonly namespace?: string;
}

/** Writes a copy of the administrator's kubeconfig with these changes, and returns its path. It is removed when the running test ends. */
export async function kubeconfigWith(
  { kubeconfigPath }: Pick<TestKubernetes, "kubeconfigPath">,
  { user, replacesUser = false, namespace }: Changes,
): Promise<string> {
  const config = parse(await readFile(kubeconfigPath, "utf8")) as {
    users: Array<{ user: object }>;
    contexts: Array<{ context: object }>;
  };
  if (user !== undefined) for (const one of config.users) one.user = replacesUser ? user : { ...one.user, ...user };
  if (namespace !== undefined) for (const one of config.contexts) one.context = { ...one.context, namespace };
  const dir = await mkdtemp(join(tmpdir(), "postern-kubeconfig-"));
  onTestFinished(() => rm(dir, { recursive: true }));
  const path = join(dir, "config");
  await writeFile(path, stringify(config), { mode: 0o600 });
  return path;
}
