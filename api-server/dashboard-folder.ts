import { existsSync } from "node:fs";
import { join } from "node:path";

/** Returns the folder of the built dashboard: beside this server's bundle (see scripts/bundle.ts), or in the checkout. */
export function dashboardFolder(): string {
  const bundled = join(import.meta.dirname, "dashboard");
  return existsSync(join(bundled, "index.html")) ? bundled : join(import.meta.dirname, "..", "dashboard", "dist");
}
