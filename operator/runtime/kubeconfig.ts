import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { parse } from "yaml";
import * as z from "zod";
import type { Cluster, Environment, SignIn, TlsSettings } from "./cluster-access.ts";
import { ExecPlugin, type IssuedCredential, runExecPlugin } from "./exec-plugin.ts";

/* Fields of a kubeconfig (https://kubernetes.io/docs/reference/config-api/kubeconfig.v1) that determine how to reach a cluster. */

const ClusterEntry = z.object({
  server: z.string(),
  "certificate-authority": z.string().optional(),
  "certificate-authority-data": z.string().optional(),
  "insecure-skip-tls-verify": z.boolean().optional(),
  "tls-server-name": z.string().optional(),
  "proxy-url": z.string().optional(),
});
const UserEntry = z.object({
  token: z.string().optional(),
  tokenFile: z.string().optional(),
  username: z.string().optional(),
  password: z.string().optional(),
  "client-certificate": z.string().optional(),
  "client-certificate-data": z.string().optional(),
  "client-key": z.string().optional(),
  "client-key-data": z.string().optional(),
  as: z.string().optional(),
  exec: ExecPlugin.optional(),
  "auth-provider": z.unknown().optional(),
});
type UserEntry = z.infer<typeof UserEntry>;
const ContextEntry = z.object({ cluster: z.string(), user: z.string().optional(), namespace: z.string().optional() });

const named = <Name extends string, Entry extends z.ZodType>(name: Name, entry: Entry) =>
  z
    .array(z.object({ name: z.string(), [name]: entry } as { name: z.ZodString } & Record<Name, Entry>))
    .nullish()
    .transform((list) => list ?? []);
const Kubeconfig = z.object({
  "current-context": z.string().optional(),
  clusters: named("cluster", ClusterEntry),
  contexts: named("context", ContextEntry),
  users: named("user", UserEntry.nullish()),
});

/** Age at which files are read again, because their certificates and tokens are replaced while the operator runs. */
const KEPT_MS = 60_000;

/**
 * Reads the current context of a kubeconfig file. Throws if the context names no cluster, or uses an unsupported method of authentication.
 * Plugins inherit `env`.
 */
export async function readKubeconfig(path: string, env: Environment): Promise<Cluster> {
  const parsed = Kubeconfig.safeParse(parse(await readFile(path, "utf8")));
  if (!parsed.success) throw new Error(`the kubeconfig ${path}: ${z.prettifyError(parsed.error)}`);
  const config = parsed.data;
  const pick = <T extends { readonly name: string }>(what: string, list: readonly T[], name: string | undefined): T => {
    const found = list.find((one) => one.name === name);
    if (found === undefined) throw new Error(`the kubeconfig ${path} has no ${what} named ${name ?? "(no name)"}`);
    return found;
  };
  const { context } = pick("context", config.contexts, config["current-context"]);
  const { cluster } = pick("cluster", config.clusters, context.cluster);
  const user = (context.user === undefined ? undefined : pick("user", config.users, context.user).user) ?? {};
  if (user["auth-provider"] !== undefined) {
    throw new Error(`the kubeconfig ${path} uses an auth-provider, which Kubernetes 1.26 removed: use an exec plugin`);
  }
  const dir = dirname(resolve(path));

  const readPem = (file: string | undefined, data: string | undefined) =>
    data !== undefined ? Buffer.from(data, "base64").toString("utf8") : readOptional(dir, file);
  const read = async (): Promise<{ signIn: SignIn; expiresAtMs: number }> => {
    const issued = user.exec === undefined ? undefined : await runExecPlugin(user.exec, dir, env);
    const [ca, cert, key, token] = await Promise.all([
      readPem(cluster["certificate-authority"], cluster["certificate-authority-data"]),
      issued?.clientCertificateData ?? readPem(user["client-certificate"], user["client-certificate-data"]),
      issued?.clientKeyData ?? readPem(user["client-key"], user["client-key-data"]),
      issued?.token ?? (user.tokenFile === undefined ? user.token : readOptional(dir, user.tokenFile)),
    ]);
    const tls: TlsSettings = {
      ca,
      cert,
      key,
      servername: cluster["tls-server-name"],
      ...(cluster["insecure-skip-tls-verify"] === true ? { rejectUnauthorized: false } : {}),
    };
    return { signIn: { headers: headersOf(user, token?.trim()), tls }, expiresAtMs: expiryOf(issued) };
  };

  let known: { signIn: SignIn; expiresAtMs: number } | undefined;
  let reading: Promise<{ signIn: SignIn; expiresAtMs: number }> | undefined;
  return {
    access: {
      server: cluster.server.replace(/\/+$/, ""),
      proxyUrl: cluster["proxy-url"],
      signIn: async () => {
        if (known !== undefined && Date.now() < known.expiresAtMs) return known.signIn;
        // Concurrent requests share one run of a plugin. A run can take a second, and may open a browser.
        reading ??= read().finally(() => {
          reading = undefined;
        });
        known = await reading;
        return known.signIn;
      },
      forget: () => {
        known = undefined;
      },
    },
    namespace: context.namespace ?? "default",
  };
}

async function readOptional(dir: string, file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : await readFile(resolve(dir, file), "utf8");
}

function headersOf({ username, password, as }: UserEntry, token: string | undefined): Record<string, string> {
  const basic = username === undefined ? undefined : Buffer.from(`${username}:${password ?? ""}`).toString("base64");
  const authorization = token !== undefined ? `Bearer ${token}` : basic && `Basic ${basic}`;
  return {
    ...(authorization === undefined ? {} : { authorization }),
    ...(as === undefined ? {} : { "impersonate-user": as }),
  };
}

/** Returns the expiry of a credential. A credential without one is cached until the server rejects it. */
function expiryOf(issued: IssuedCredential | undefined): number {
  if (issued === undefined) return Date.now() + KEPT_MS;
  return issued.expirationTimestamp === undefined
    ? Number.POSITIVE_INFINITY
    : Date.parse(issued.expirationTimestamp) - EARLY_MS;
}

/** Time before their expiry at which credentials are replaced, because a request takes time. */
const EARLY_MS = 30_000;
