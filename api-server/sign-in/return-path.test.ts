import { expect, test } from "vitest";
import { returnPath } from "./return-path.ts";

test.each([
  "/dashboard/",
  "/dashboard/keys",
  "/dashboard/keys?search=a%20b&workspace=ws_1",
  "/dashboard/apis/api_1/keys",
])("sign-in returns to the requested dashboard page %s", (path) => expect(returnPath(path)).toBe(path));

test.each([
  ["another host", "https://evil.test/dashboard/"],
  ["another scheme", "javascript:alert(1)//dashboard/"],
  ["a host without a scheme", "//evil.test/dashboard/"],
  ["three slashes", "///evil.test/dashboard/"],
  ["backslashes", "\\\\evil.test/dashboard/"],
  ["a backslash behind the path", "/dashboard/\\..\\..\\evil.test"],
  ["a slash and a backslash", "/\\evil.test/dashboard/"],
  ["a host before an @", "/dashboard/@evil.test".replace("/dashboard/", "@")],
  ["dot segments that leave", "/dashboard/../v2/keys.deleteKey"],
  ["encoded dot segments", "/dashboard/%2e%2e/v2/x"],
  ["dot segments to a host", "/dashboard/..//evil.test"],
  ["a tab in the scheme", "java\tscript:alert(1)"],
  ["a line break", "/dashboard/\r\nSet-Cookie: a=b"],
  ["a null", "/dashboard/\0"],
  ["another path", "/docs"],
  ["a path that begins alike", "/dashboardx/"],
  ["the path without its slash", "/dashboard"],
  ["upper case", "/DASHBOARD/"],
  ["the sign-in itself", "/dashboard/auth/start?to=/dashboard/"],
  ["the page to sign in", "/dashboard/sign-in"],
  ["something huge", `/dashboard/${"a".repeat(2000)}`],
  ["nothing", ""],
  ["no text", undefined],
  ["two", ["/dashboard/a", "/dashboard/b"]],
])("sign-in returns to the start page instead of %s", (_, requested) =>
  expect(returnPath(requested)).toBe("/dashboard/"),
);
