import { expect, test } from "vitest";
import { V1_CODES, v1FailureOf } from "../../api-server/plugins/v1/errors.ts";
import { v1Procedures } from "../../api-server/v1/index.ts";
import { isOpen } from "../../api-server/v1/procedure.ts";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import { codesIn, readReference } from "./reference.ts";

/* The lists of docs/reference/api-v1.md hold what the code holds: nothing less, and nothing more. */

const reference = readReference("api-v1.md");
const only = (cell: string): string => codesIn(cell)[0] ?? "";
const sorted = (lines: Iterable<string>): string[] => [...lines].sort();

test("api-v1.md lists procedures with methods, successors and root key requirement", () => {
  const [line = ""] = /^No root key: .*$/m.exec(reference.section("1")) ?? [];
  const open = codesIn(line);
  const listed = reference
    .rows("1", "method")
    .map(([method, cell = "", successor = ""]) => [method, only(cell), only(successor)] as const)
    .map(([method, path, successor]) =>
      [method, path.replaceAll(/\{(\w+)\}/g, ":$1"), open.includes(path), successor].join(" "),
    );
  const served = v1Procedures.map((procedure) =>
    [procedure.method, `/v1/${procedure.path}`, isOpen(procedure), procedure.successor].join(" "),
  );
  expect(sorted(listed)).toEqual(sorted(served));
});

test("api-v1.md lists error codes with their statuses", () => {
  const listed = reference.rows("4", "code").map(([code = ""]) => codesIn(code)[0] ?? "");
  expect(sorted(listed)).toEqual(sorted(Object.keys(V1_CODES)));
  const statuses = new Map(reference.rows("4", "code").map(([code = "", text = ""]) => [codesIn(code)[0] ?? "", text]));
  const kinds = v1Procedures.flatMap(({ errors }) => errors) as readonly ErrorKind[];
  for (const kind of new Set<ErrorKind>([...kinds, "request_timeout", "request_body_too_large", "unauthorized"])) {
    const { status, code } = v1FailureOf(kind);
    expect(statuses.get(code), `${kind} (${ERROR_KINDS[kind].status} in v2)`).toContain(String(status));
  }
});
