import { expect, test } from "vitest";
import { readHeaders } from "./request-headers.ts";

test("header lines have a name and a value, which may be empty or contain colons", () => {
  expect(readHeaders(" X-Api-Version:  2 \n\nX-Empty:\nX-Url: http://a:1/\n")).toEqual([
    { name: "X-Api-Version", value: "2" },
    { name: "X-Empty", value: "" },
    { name: "X-Url", value: "http://a:1/" },
  ]);
});

test.each(["X-Api-Version 2", ": 2", "X Api: 2", "X-Api-Version: \u0662"])("line %j is not a header", (line) => {
  expect(readHeaders(`\n${line}`)).toBe("Line 2: expected NAME: VALUE, such as X-Api-Version: 2.");
});
