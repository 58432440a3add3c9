import { describe, expect, test } from "vitest";
import { csvOf } from "../../components/download.ts";
import { EXPORT_COLUMNS, exportRow, readImport } from "./key-csv.ts";
import { readCsv } from "./read-csv.ts";

const HASH = `${"a".repeat(43)}=`;

describe("CSV", () => {
  test("CSV parser handles quotes, commas, line endings, empty lines and line numbers", () =>
    expect(readCsv('\uFEFFa,"b,""c"\r\n\r\n1,"two\nlines"\n,\n3,4\r5')).toEqual([
      { line: 1, cells: ["a", 'b,"c'] },
      { line: 3, cells: ["1", "two\nlines"] },
      { line: 6, cells: ["3", "4"] },
      { line: 7, cells: ["5"] },
    ]));

  test.each([
    ["a;b;c\n1;2,5;3", ["1", "2,5", "3"]],
    ["a\tb\n1\t2", ["1", "2"]],
    ['"a,b,c";d\n1;2', ["1", "2"]],
  ])("CSV parser detects the separator of %j from its first line", (text, cells) =>
    expect(readCsv(text)[1]?.cells).toEqual(cells),
  );

  test("CSV parser closes an open quote at the end of the file", () =>
    expect(readCsv('a\n"b')[1]?.cells).toEqual(["b"]));
});

describe("an import", () => {
  test("key import reads every CSV column", () => {
    const head =
      "key,name,external_id,enabled,expires,credits,refill_interval,refill_amount,refill_day,roles,permissions,ratelimits,meta";
    const limit = { name: "requests", limit: 10, duration: 60000, autoApply: true };
    const cells = `prod_x,Billing,user_1,no,2030-01-01T00:00:00Z,5,monthly,10,31,"[""a,b""]",x.read; y.read,"${JSON.stringify([limit]).replaceAll('"', '""')}","{""a"":1}"`;
    expect(readImport(`${head},unknown\n${cells},1`)).toEqual({
      problems: [],
      ignored: ["unknown"],
      rows: [
        {
          line: 2,
          secret: "prod_x",
          hash: undefined,
          key: {
            name: "Billing",
            externalId: "user_1",
            enabled: false,
            expires: Date.UTC(2030, 0, 1),
            credits: { remaining: 5, refill: { interval: "monthly", amount: 10, refillDay: 31 } },
            roles: ["a,b"],
            permissions: ["x.read", "y.read"],
            ratelimits: [limit],
            meta: { a: 1 },
          },
        },
      ],
    });
  });

  test.each([
    ["key,hash", ",", "has neither"],
    ["key,hash", `x,${HASH}`, "has both"],
    ["hash", "nonsense", "not a SHA-256"],
    ["key,enabled", "x,maybe", "neither true nor false"],
    ["key,expires", "x,tomorrow", "not a time"],
    ["key,credits", "x,-1", "not an integer"],
    ["key,refill_interval", "x,daily", "a refill requires"],
    ["key,refill_interval", "x,weekly", "neither daily nor monthly"],
    ["key,meta", 'x,"[1]"', "a JSON object"],
    ["key,meta", "x,{", "a JSON object"],
    ["key,roles", 'x,"[1]"', "array of strings"],
    ["name", "x", "must name a column key or hash"],
  ])("key import of columns %s with row %s reports: %s", (head, row, problem) => {
    const text = row === "," ? '"","  x"'.replace("  x", "") : row;
    const { rows, problems } = readImport(`${head},name\n${text},n`);
    expect(rows).toEqual([]);
    expect(problems[0]?.problem).toContain(problem);
  });

  test("key import keeps one of two equal keys and reports the line of the first", () =>
    expect(readImport("key\na\nb\na")).toMatchObject({
      rows: [{ line: 2 }, { line: 3 }],
      problems: [{ line: 4, problem: "has the same key as line 2" }],
    }));

  test("key import accepts 10,000 rows and rejects more", () => {
    const rows = (n: number) => `key\n${Array.from({ length: n }, (_, i) => `k${i}`).join("\n")}`;
    expect(readImport(rows(10_000)).rows).toHaveLength(10_000);
    expect(readImport(rows(10_001))).toMatchObject({
      rows: [],
      problems: [{ problem: expect.stringContaining("10,001") }],
    });
  });
});

test.each(["=1+1", "+x", "-x", "@SUM(A1)", "'quoted", '"; DROP', "a,b;c", "line\nbreak", "名前 🎉", "＝1"])(
  "CSV import report escapes formulas and restores name %j",
  (name) => {
    const csv = csvOf(EXPORT_COLUMNS, [
      exportRow({ keyId: "key_1", start: "s", enabled: true, createdAt: 0, name, meta: { name } }),
    ]);
    expect(csv).not.toMatch(/(^|,)"?[=+\-@＝]/m);
    const withHash = csv.replace(/^/, '"hash",').replace('\r\n"', `\r\n"${HASH}","`);
    expect(readImport(withHash)).toMatchObject({ problems: [], rows: [{ key: { name, meta: { name } } }] });
  },
);
