import { existsSync } from "node:fs";
import { join } from "node:path";

/** Where the built dashboard is: beside this server's one file, as scripts/bundle.ts puts it, or in the checkout. */
export function dashboardFolder(): string {
  const bundled = join(import.meta.dirname, "dashboard");
  return existsSync(join(bundled, "index.html")) ? bundled : join(import.meta.dirname, "..", "dashboard", "dist");
}
