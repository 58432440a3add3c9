import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { compileGrants, starsOf } from "./grants.ts";

const satisfies = (grant: string, requested: string): boolean => compileGrants([grant]).satisfies(requested);

describe("a granted permission", () => {
  test.each([
    ["documents.*", "documents.read", true],
    ["documents.*", "documents.a.b", true],
    ["documents.*", "documents.*", true],
    ["documents.*", "documents", false],
    ["documents.*", "documents.", false],
    ["documents.*", "documentsx.read", false],
    ["documents.*", "Documents.read", false],
    ["a:b:*", "a:b:c", true],
    ["a:b:*", "a:b:c.d", true],
    ["a:b:*", "a:b", false],
    ["*", "anything.at:all/really", true],
    ["api.*.read", "api.v1.read", true],
    ["api.*.read", "api.*.read", true],
    ["api.*.read", "api.read", false],
    ["api.*.read", "api..read", false],
    ["api.*.read", "api.v1.x.read", false],
    ["api.*.read", "api.v1:x.read", false],
    ["api.*.read", "api.v1.reads", false],
    ["api.*.read", "api:v1.read", false],
    ["a:*.c", "a:b.c", true],
    ["a:*.c", "a.b.c", false],
    ["a.*.c.*", "a.b.c.d.e", true],
    ["a.*.c.*", "a.b.c.", false],
    ["a.*.*.d", "a.b.c.d", true],
    ["a.*.*.d", "a.b.d", false],
    ["doc*", "doc*", true],
    ["doc*", "document", false],
    ["*.read", "a.read", false],
    ["*.read", "*.read", true],
    ["a.*b", "a.xb", false],
    ["a.**", "a.b", false],
    ["documents.read", "documents.*", false],
    ["documents.read", "documents.read", true],
    ["documents.read", "documents.Read", false],
    ["a/*", "a/b", false],
  ])("match of granted permission %s with required permission %s is %s", (grant, requested, expected) =>
    expect(satisfies(grant, requested)).toBe(expected),
  );
});

test("an empty grant set satisfies no permission", () => expect(compileGrants([]).satisfies("a")).toBe(false));

/** Returns the same rules as a regular expression. */
function regexOf(slug: string): RegExp {
  if (slug === "*") return /^[\s\S]*$/;
  const escaped = slug.replace(/[.*+?^${}()|[\]\\/:-]/g, "\\$&");
  const source = escaped.replace(/(?<=\\[.:])\\\*$/, "[\\s\\S]+").replace(/(?<=\\[.:])\\\*(?=\\[.:])/g, "[^.:]+");
  return new RegExp(`^${source}$`);
}

test("grant matching gives the same results as equivalent regular expressions for any permissions", () => {
  const slug = fc
    .array(fc.constantFrom("a", "b", ".", ".", ":", "*", "*"), { minLength: 1, maxLength: 9 })
    .map((parts) => parts.join(""));
  fc.assert(
    fc.property(fc.array(slug, { maxLength: 5 }), slug, (held, requested) => {
      const expected = held.some((one) => one === requested || regexOf(one).test(requested));
      expect(compileGrants(held).satisfies(requested)).toBe(expected);
    }),
    { numRuns: 5000 },
  );
});

test.each([
  ["docs.read", "none"],
  ["*", "everything"],
  ["docs.*", "wildcard"],
  ["docs:*:read", "wildcard"],
  ["doc*", "literal"],
  ["*.read", "literal"],
  ["docs.*read", "literal"],
  ["docs.*.a*", "literal"],
  ["**", "literal"],
])("permission %s has the wildcard category %s", (slug, stars) => {
  expect(starsOf(slug)).toBe(stars);
  // A literal star grants only itself.
  if (stars === "literal" && !slug.includes(".*.")) {
    expect(compileGrants([slug]).satisfies(slug.replaceAll("*", "x"))).toBe(false);
  }
});
