import { expect, test } from "vitest";
import { V1_CODES, v1FailureOf } from "../../api-server/plugins/v1/errors.ts";
import { v1Procedures } from "../../api-server/v1/index.ts";
import { isOpen } from "../../api-server/v1/procedure.ts";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import { codesIn, readReference } from "./reference.ts";

/* The lists of docs/reference/api-v1.md hold what the code holds: nothing less, and nothing more. */

const reference = readReference("api-v1.md");
const sorted = (lines: Iterable<string>): string[] => [...lines].sort();

/** `keys.updateCredits` of `/v1/keys.updateCredits`; the complete line of a path of another form. */
const nameOf = (method: string, path: string): string =>
  /^[a-z]+\.[a-zA-Z]+$/.test(path) ? path.replace("ratelimits.", "ratelimit.") : `${method} /v1/${path}`;

test("api-v1.md lists the procedures whose v2 name differs, and the procedures that need no root key", () => {
  const renamed = v1Procedures
    .map(({ method, path, successor }) => [nameOf(method, path.replaceAll(/:(\w+)/g, "{$1}")), successor] as const)
    .filter(([name, successor]) => name !== successor && successor !== "liveness");
  const listed = reference
    .rows("1", "v1", "v2")
    .flatMap(([names = "", successor = ""]) => codesIn(names).map((name) => `${name} ${codesIn(successor)[0]}`));
  expect(sorted(listed)).toEqual(sorted(renamed.map(([name, successor]) => `${name} ${successor}`)));
  const open = v1Procedures.filter(isOpen).map(({ path }) => `/v1/${path}`);
  const [sentence = ""] = /^.*need no root key/ms.exec(reference.section("1")) ?? [];
  expect(sorted(codesIn(sentence).filter((code) => code.startsWith("/v1/")))).toEqual(sorted(open));
});

test("api-v1.md lists error codes with their statuses", () => {
  const entries = [...reference.section("4").matchAll(/^- `(\w+)`: (.*)$/gm)];
  const statuses = new Map(entries.map(([, code = "", text = ""]) => [code, text]));
  expect(sorted(statuses.keys())).toEqual(sorted(Object.keys(V1_CODES)));
  const kinds = v1Procedures.flatMap(({ errors }) => errors) as readonly ErrorKind[];
  for (const kind of new Set<ErrorKind>([...kinds, "request_timeout", "request_body_too_large", "unauthorized"])) {
    const { status, code } = v1FailureOf(kind);
    expect(statuses.get(code), `${kind} (${ERROR_KINDS[kind].status} in v2)`).toContain(String(status));
  }
});
