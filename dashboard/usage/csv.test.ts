import { expect, test } from "vitest";
import { csvOf } from "./csv.ts";

test("texts are quoted, numbers and booleans bare, null empty, arrays JSON, lines end in CRLF", () => {
  const rows = [{ "a,b": 'say "hi"', n: -1.5, ok: true, none: null, tags: ["x", 'y"'] }];
  expect(csvOf(["a,b", "n", "ok", "none", "tags"], rows)).toBe(
    '"a,b","n","ok","none","tags"\r\n"say ""hi""",-1.5,true,,"[""x"",""y\\""""]"\r\n',
  );
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=cmd|"/c calc"!A1'])(
  "a text that a spreadsheet would run is made a text: %j",
  (text) => {
    const written = `"'${text.replaceAll('"', '""')}"`;
    expect(csvOf([text], [{ [text]: text }])).toBe(`${written}\r\n${written}\r\n`);
  },
);

test("line feeds and unicode stay, and a missing member is empty", () => {
  expect(csvOf(["a", "b"], [{ a: "1\n2 名前 🎉" }])).toBe('"a","b"\r\n"1\n2 名前 🎉",\r\n');
});
