import { execFile } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary, findPart, isExecutable } from "./find.ts";
import { buildOnce, cacheFolder, type Go } from "./go-build.ts";

const TRAEFIK = "3.7.13";
const LEGO = "github.com/go-acme/lego/v5";

/**
 * Returns Traefik from the PATH, or built once from its Go module into the user's cache in a few minutes. The built one lacks DNS providers
 * for certificates and basic authentication, because the Go proxy lacks some of their modules; ForwardAuth, router and proxy are as
 * published.
 */
export async function findTraefik(): Promise<string> {
  const folder = join(cacheFolder(), `traefik-${TRAEFIK}`);
  const program = join(folder, "traefik");
  const found = async () => ((await isExecutable(program)) ? program : undefined);
  const built = async () => ((await found()) === undefined ? undefined : folder);
  const build = async () => {
    await buildOnce({ what: `Traefik ${TRAEFIK}`, takes: "some minutes", folder, built, build: buildTraefik });
    return program;
  };
  return await findPart(
    "Traefik",
    "install traefik, or Go 1.26 or newer, or python3 with venv, so that it can be built",
    [
      { name: "the PATH", attempt: () => findBinary(["traefik"]) },
      { name: "the cache", attempt: found },
      { name: "Go build", attempt: build },
    ],
  );
}

const NO_DNS_PROVIDERS = `package dns

import (
	"errors"

	"${LEGO}/challenge"
)

func NewDNSChallengeProviderByName(string) (challenge.Provider, error) {
	return nil, errors.New("this build has no DNS providers")
}
`;

/** Empty replacement of Traefik's extension module, which the published module lacks. */
const EXTENSIONS = `package ext

type HTTP struct{}

func (in *HTTP) DeepCopyInto(*HTTP) {}

type Router struct{}

func (in *Router) DeepCopyInto(*Router) {}
`;

/** Builds in a copy of the module, because only a main module may replace dependencies. */
async function buildTraefik({ work, go }: Go): Promise<void> {
  const sources = join(work, "traefik");
  await copyModule(go, `github.com/traefik/traefik/v3@v${TRAEFIK}`, sources);
  const ext = join(sources, "pkg/config/dynamic/ext");
  await mkdir(ext);
  await writeFile(join(ext, "ext.go"), EXTENSIONS);
  await writeFile(join(ext, "go.mod"), "module github.com/traefik/traefik/dynamic/ext\n\ngo 1.24\n");
  const listed = await go(["list", "-C", sources, "-m", "-f", "{{.Version}}", LEGO]);
  await copyModule(go, `${LEGO}@${listed.trim()}`, join(sources, "lego"));
  await writeFile(join(sources, "lego/providers/dns/zz_gen_dns_providers.go"), NO_DNS_PROVIDERS);
  // Both files call functions that only Traefik's copy of the library has.
  const auth = join(sources, "pkg/middlewares/auth");
  await replaceIn(join(auth, "basic_auth.go"), "goauth.CheckSecret", "func(string, string) bool { return false }");
  await replaceIn(join(auth, "digest_auth.go"), "RequireAuthStale", "RequireAuth");
  const replaced = [`${LEGO}=./lego`, "github.com/abbot/go-http-auth=github.com/abbot/go-http-auth@v0.4.0"];
  await go(["mod", "edit", "-C", sources, ...replaced.flatMap((one) => ["-replace", one])]);
  await go(["build", "-C", sources, "-o", join(work, "bin", "traefik"), "-ldflags", "-s -w", "./cmd/traefik"]);
}

async function replaceIn(file: string, from: string, to: string): Promise<void> {
  const text = await readFile(file, "utf8");
  if (!text.includes(from)) throw new Error(`${file} does not contain ${from}`);
  await writeFile(file, text.replaceAll(from, to));
}

/** The module cache is read-only, and so are copies of its files. */
async function copyModule(go: Go["go"], module: string, to: string): Promise<void> {
  const { Dir } = JSON.parse(await go(["mod", "download", "-json", module]));
  await cp(Dir, to, { recursive: true });
  await promisify(execFile)("chmod", ["-R", "u+w", to]);
}
