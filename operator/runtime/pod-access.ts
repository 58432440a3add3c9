import { readFile } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import type { Cluster, Environment, SignIn } from "./cluster-access.ts";

/** Directory with the ServiceAccount token, the CA of the API server and the namespace. */
const MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
/** Interval at which the token is read again, as in client-go. The kubelet replaces the token before it expires. */
const KEPT_MS = 60_000;

/** Returns the address of the Kubernetes API server and the credentials of the pod in which this process runs. Throws outside of a pod. */
export async function podAccess(env: Environment, mount = MOUNT): Promise<Cluster> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  if (host === undefined || host === "") {
    throw new Error("this process does not run in a pod of a Kubernetes cluster: set a kubeconfig file");
  }
  let known: { readonly signIn: SignIn; readonly readAt: number } | undefined;
  const read = async (): Promise<SignIn> => {
    const [token, ca] = await Promise.all([text(join(mount, "token")), text(join(mount, "ca.crt"))]);
    return { headers: { authorization: `Bearer ${token}` }, tls: { ca } };
  };
  return {
    access: {
      server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      signIn: async () => {
        if (known === undefined || performance.now() - known.readAt > KEPT_MS) {
          known = { signIn: await read(), readAt: performance.now() };
        }
        return known.signIn;
      },
      forget: () => {
        known = undefined;
      },
    },
    namespace: await text(join(mount, "namespace")),
  };
}

const text = async (path: string): Promise<string> => (await readFile(path, "utf8")).trim();
