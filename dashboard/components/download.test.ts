import { expect, test } from "vitest";
import { csvOf } from "./download.ts";

test("CSV export quotes text, leaves null empty and ends lines in CRLF", () => {
  const rows = [{ "a,b": 'say "hi"', n: -1.5, ok: true, none: null, tags: ["x", 'y"'] }];
  expect(csvOf(["a,b", "n", "ok", "none", "tags"], rows)).toBe(
    '"a,b","n","ok","none","tags"\r\n"say ""hi""",-1.5,true,,"[""x"",""y\\""""]"\r\n',
  );
});

test.each(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", '=cmd|"/c calc"!A1'])(
  "CSV export escapes text that a spreadsheet would execute: %j",
  (text) => {
    const written = `"'${text.replaceAll('"', '""')}"`;
    expect(csvOf([text], [{ [text]: text }])).toBe(`${written}\r\n${written}\r\n`);
  },
);

test("CSV export keeps line feeds and Unicode and leaves missing values empty", () => {
  expect(csvOf(["a", "b"], [{ a: "1\n2 名前 🎉" }])).toBe('"a","b"\r\n"1\n2 名前 🎉",\r\n');
});
