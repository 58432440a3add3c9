import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

/*
 * Creates `sidecar/ext-auth/generated`: the messages and services of the gRPC ext-auth endpoint, from the Go modules that define them
 * (versions in `go.mod`). Requires Go and network access to npm, so run the script manually: `node scripts/gateway-protocols/make.ts`.
 */

const HERE = import.meta.dirname;
const OUT = resolve(HERE, "../../sidecar/ext-auth/generated");
const TOOLS = ["@bufbuild/buf@1.75.0", "@bufbuild/protoc-gen-es@2.17.0"];

const template = (descriptors: string, out: string): string =>
  JSON.stringify({
    version: "v2",
    inputs: [{ binary_image: descriptors }],
    plugins: [{ local: "protoc-gen-es", out, include_imports: true, opt: ["target=js+dts", "import_extension=js"] }],
  });

const work = mkdtempSync(join(tmpdir(), "postern-protocols-"));
try {
  cpSync(HERE, work, { recursive: true });
  const env = { ...process.env, GOFLAGS: "-mod=mod" };
  const descriptors = execFileSync("go", ["run", "."], { cwd: work, env, maxBuffer: 64 * 1024 * 1024 });
  writeFileSync(join(work, "all.binpb"), descriptors);
  writeFileSync(join(work, "template.json"), template(join(work, "all.binpb"), join(work, "out")));
  const packages = TOOLS.flatMap((tool) => ["--package", tool]);
  const command = ["exec", "--yes", ...packages, "--", "buf", "generate", "--template", join(work, "template.json")];
  execFileSync("npm", command, { cwd: work, stdio: "inherit" });
  // Removes generated files that the protobuf library already contains.
  rmSync(join(work, "out/google/protobuf"), { recursive: true });
  cpSync(join(OUT, "README.md"), join(work, "out/README.md"));
  rmSync(OUT, { recursive: true, force: true });
  cpSync(join(work, "out"), OUT, { recursive: true });
} finally {
  rmSync(work, { recursive: true, force: true });
}
