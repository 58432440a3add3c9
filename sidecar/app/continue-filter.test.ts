import { expect, test } from "vitest";
import { ContinueFilter } from "./continue-filter.ts";

const CONTINUE = "HTTP/1.1 100 Continue\r\nX-A: b\r\n\r\n";
const HINTS = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
const ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\nHTTP/1.1 100 is a body too";

/** What the parser gets of `text`, when it arrives in pieces of this length. */
function passed(text: string, length: number): string {
  const filter = new ContinueFilter();
  filter.expectHead();
  let out = "";
  for (let at = 0; at < text.length; at += length) {
    const pass = filter.pass(Buffer.from(text.slice(at, at + length), "latin1"));
    out += pass?.toString("latin1") ?? "";
  }
  return out;
}

test.each([
  { name: "an answer alone", text: ANSWER, passes: ANSWER },
  { name: "one before the answer", text: CONTINUE + ANSWER, passes: ANSWER },
  { name: "several, and other interim answers", text: CONTINUE + HINTS + CONTINUE + ANSWER, passes: HINTS + ANSWER },
  { name: "one of HTTP/1.0", text: `HTTP/1.0 100 \r\n\r\n${ANSWER}`, passes: ANSWER },
  { name: "bytes that are not HTTP", text: "HTTX", passes: "HTTX" },
  { name: "a status that only begins so", text: "HTTP/1.1 1000 No\r\n\r\n", passes: "" },
  {
    name: "an upgrade",
    text: `${CONTINUE}HTTP/1.1 101 Go\r\n\r\n${CONTINUE}`,
    passes: `HTTP/1.1 101 Go\r\n\r\n${CONTINUE}`,
  },
  {
    name: "another line end",
    text: "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n\n",
    passes: "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\n\n",
  },
])("from $name the parser gets everything but `100 Continue`, however it is split", ({ text, passes }) => {
  for (let length = 1; length <= text.length; length++) expect(passed(text, length)).toBe(passes);
});

test("after a response nothing is removed until the next request is sent", () => {
  const filter = new ContinueFilter();
  filter.expectHead();
  filter.pass(Buffer.from(ANSWER));
  expect(String(filter.pass(Buffer.from(CONTINUE)))).toBe(CONTINUE);
  filter.expectHead();
  expect(filter.pass(Buffer.from(CONTINUE))).toBeUndefined();
});

test("at most the size of a head is held back", () => {
  const filter = new ContinueFilter();
  filter.expectHead();
  const begin = Buffer.from("HTTP/1.1 100 Continue\r\nX-Long: ");
  expect(filter.pass(begin)).toBeUndefined();
  const long = Buffer.alloc(20_000, "l");
  expect(filter.pass(long)).toEqual(Buffer.concat([begin, long]));
});
