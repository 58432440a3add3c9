import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { type Encoding, entityTag } from "./negotiation.ts";

/** Serves the files of the built dashboard. */
export interface DashboardFiles {
  /**
   * Finds a file by its path below /dashboard/, such as `index.html` or `assets/main-Ab3d.js`. Only files in the listing of the build
   * folder can be found.
   */
  find(path: string): DashboardFile | undefined;
  readonly page: DashboardFile;
}

export interface DashboardFile {
  readonly type: string;
  /** Whether the file name contains a hash of the content, so the file never changes. */
  readonly isHashed: boolean;
  /** Available encodings of the file, the smallest first; `identity` is always among them. */
  readonly encodings: readonly Encoding[];
  read(encoding: Encoding): Promise<Content>;
}

export interface Content {
  readonly bytes: Buffer;
  readonly etag: string;
}

const SUFFIXES: readonly (readonly [Encoding, string])[] = [
  ["br", ".br"],
  ["gzip", ".gz"],
  ["identity", ""],
];

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

const PAGE = "index.html";

/**
 * Returns a function that reads the folder's current files; `undefined` if the dashboard was not built. The folder is listed again when its
 * `index.html` has changed, for example after a rebuild while the server is running.
 */
export function followDashboard(folder: string): () => Promise<DashboardFiles | undefined> {
  let known: { readonly madeMs: number; readonly files: Promise<DashboardFiles> } | undefined;
  return async () => {
    const madeMs = await stat(join(folder, PAGE)).then(
      ({ mtimeMs }) => mtimeMs,
      () => undefined,
    );
    if (madeMs === undefined) return undefined;
    if (known?.madeMs !== madeMs) known = { madeMs, files: listFiles(folder) };
    try {
      return await known.files;
    } catch (error) {
      known = undefined;
      throw error;
    }
  };
}

async function listFiles(folder: string): Promise<DashboardFiles> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = new Set(
    entries
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) =>
        join(parentPath, name)
          .slice(folder.length + 1)
          .replaceAll("\\", "/"),
      ),
  );
  const files = new Map<string, DashboardFile>();
  for (const path of paths) {
    const type = TYPES[extname(path)];
    if (type !== undefined) files.set(path, describe(join(folder, path), { path, type, paths }));
  }
  const page = files.get(PAGE);
  if (page === undefined) throw new Error(`${folder} has no ${PAGE}`);
  return { find: (path) => files.get(path), page };
}

function describe(
  absolute: string,
  { path, type, paths }: { path: string; type: string; paths: ReadonlySet<string> },
): DashboardFile {
  const there = SUFFIXES.filter(([, suffix]) => paths.has(`${path}${suffix}`));
  const known = new Map<Encoding, Promise<Content>>();
  return {
    type,
    isHashed: path.startsWith("assets/"),
    encodings: there.map(([encoding]) => encoding),
    read: (encoding) => {
      const content = known.get(encoding) ?? readContent(absolute, encoding);
      known.set(encoding, content);
      // Removes a failed read from the cache, so that the next request retries it.
      content.catch(() => known.delete(encoding));
      return content;
    },
  };
}

async function readContent(absolute: string, encoding: Encoding): Promise<Content> {
  const suffix = SUFFIXES.find(([name]) => name === encoding)?.[1] ?? "";
  const bytes = await readFile(`${absolute}${suffix}`);
  return { bytes, etag: entityTag(bytes, encoding === "identity" ? "" : `-${encoding}`) };
}
