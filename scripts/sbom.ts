import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { bundle, PARTS } from "./bundle.ts";

/*
 * Writes the software bill of materials of each component from the inputs of the bundler: dist/COMPONENT.cdx.json (CycloneDX 1.6) and
 * dist/COMPONENT.licences.txt.
 */

const ROOT = resolve(import.meta.dirname, "..");

export interface Component {
  readonly name: string;
  readonly version: string;
  /** License in package.json, such as `MIT`. */
  readonly licence: string;
}

/**
 * Returns, by name, the packages that have at least one file in the component. An input from a bundler plugin has the prefix `PLUGIN:`.
 * Throws if a package has no license.
 */
export function componentsOf(inputs: readonly string[]): Component[] {
  const paths = inputs.map((input) => input.replace(/^[a-z]+:/, ""));
  const folders = new Set(paths.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const components = [...folders].map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(ROOT, folder, "package.json"), "utf8"));
    if (typeof license !== "string") throw new Error(`${name} ${version} says no licence`);
    return { name, version, licence: license } as Component;
  });
  const idOf = ({ name, version }: Component) => `${name}@${version}`;
  return components.sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

/** Returns the bill of materials in CycloneDX format. */
export function cycloneDx(part: string, version: string, components: readonly Component[]): object {
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: { component: { type: "application", name: `postern-${part}`, version } },
    components: components.map(({ name, version, licence }) => ({
      type: "library",
      name,
      version,
      purl: `pkg:npm/${name.replace("@", "%40")}@${version}`,
      licenses: [{ expression: licence }],
    })),
  };
}

if (import.meta.main) {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  for (const part of Object.keys(PARTS)) {
    const folder = mkdtempSync(join(tmpdir(), "postern-sbom-"));
    const components = componentsOf(Object.keys((await bundle(part, join(folder, part))).inputs));
    rmSync(folder, { recursive: true });
    writeFileSync(
      join(ROOT, `dist/${part}.cdx.json`),
      `${JSON.stringify(cycloneDx(part, version, components), undefined, 2)}\n`,
    );
    const lines = components.map(({ name, version, licence }) => `${name} ${version}: ${licence}\n`);
    writeFileSync(join(ROOT, `dist/${part}.licences.txt`), lines.join(""));
    console.log(`dist/${part}.cdx.json  ${components.length} libraries`);
  }
}
