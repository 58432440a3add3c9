import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { parse, stringify } from "yaml";
import type { TestKubernetes } from "./kubernetes.ts";

interface Changes {
  /** Members of the user, such as `as` (impersonation) or `token`. */
  readonly user?: Readonly<Record<string, string>>;
  /** Whether the members replace the administrator's certificate instead of adding to it. */
  readonly replacesUser?: boolean;
  readonly namespace?: string;
}

/** Writes a copy of the administrator's kubeconfig with these changes and returns its path. The file is removed at the end of the test. */
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
