import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REASONS } from "../../api-server/health.ts";

test("docs/architecture.md lists exactly the degradations of the code", () => {
  const text = readFileSync(join(import.meta.dirname, "../../docs/architecture.md"), "utf8");
  const [, table = ""] = /^\| `reason` \|[^\n]*\n([\s\S]*?)\n\n/m.exec(text) ?? [];
  const listed = [...table.matchAll(/^\| `([^`]+)` \|/gm)].map(([, reason]) => reason);
  expect(listed).toEqual(REASONS);
});
