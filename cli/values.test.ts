import { describe, expect, test } from "vitest";
import { UsageError } from "./command.ts";
import {
  parseBlocks,
  parseChoice,
  parseDurationOption,
  parseHttpUrl,
  parseInstant,
  parseInteger,
  parseJsonObject,
  parseLimit,
  parseListen,
  parseName,
  parsePort,
  parseSwitch,
} from "./values.ts";

test.each(["-1", "65536", "http", ""])("port option rejects %j", (text) => {
  expect(() => parsePort("port", text)).toThrow("for --port: must be a port");
});

test.each([
  ["8002", { host: "0.0.0.0", port: 8002 }],
  ["127.0.0.1:8002", { host: "127.0.0.1", port: 8002 }],
  ["[::1]:0", { host: "::1", port: 0 }],
  ["gate.local:80", { host: "gate.local", port: 80 }],
])("%s is accepted as a listen address", (text, expected) => {
  expect(parseListen("ext-auth-grpc-listen", text, "0.0.0.0")).toEqual(expected);
});

test.each(["", "host", ":8002", "::1:8002", "127.0.0.1:70000", "a b:1"])("listen address %j is rejected", (text) => {
  expect(() => parseListen("ext-auth-grpc-listen", text, "0.0.0.0")).toThrow(UsageError);
});

test("CIDR blocks are separated by commas and validated", () => {
  expect(parseBlocks("trusted-gateways", "10.0.0.0/8, ::1").map(({ bits }) => bits)).toEqual([8, 128]);
  for (const wrong of ["", "10.0.0.0/8,", "10.0.0.0/33", "gateway"]) {
    expect(() => parseBlocks("trusted-gateways", wrong)).toThrow(
      "for --trusted-gateways: must be a list of IP addresses",
    );
  }
});

test("server address is reduced to its origin, and must be http or https", () => {
  expect(parseHttpUrl("upstream", "http://127.0.0.1:3000/")).toBe("http://127.0.0.1:3000");
  expect(() => parseHttpUrl("upstream", "127.0.0.1:3000")).toThrow("for --upstream: must be a URL");
});

describe("a whole number", () => {
  test.each(["0", "16", "255"])("integer option accepts %s", (text) => {
    expect(parseInteger("n", text, { min: 0, max: 255 })).toBe(Number(text));
  });
  test.each(["-1", "256", "1.5", "1e2", "0x10", "", " 5", "five", "99999999999999999999"])(
    "integer option rejects %j",
    (text) => {
      expect(() => parseInteger("n", text, { min: 0, max: 255, or: "none" })).toThrow(
        `invalid value "${text}" for --n: must be an integer from 0 to 255, or none`,
      );
    },
  );
  test.each(["0", "10001"])("limit option rejects %s", (text) => expect(() => parseLimit(text)).toThrow(UsageError));
});

describe("an instant", () => {
  const nowMs = Date.UTC(2026, 10, 21, 12);
  const ahead = { nowMs, spans: "ahead" } as const;

  test.each([
    { text: "2026-12-31", ms: Date.UTC(2026, 11, 31) },
    { text: "2028-02-29", ms: Date.UTC(2028, 1, 29) },
    { text: "2026-12-31T18:00Z", ms: Date.UTC(2026, 11, 31, 18) },
    { text: "2026-12-31T18:00:30.5+02:00", ms: Date.UTC(2026, 11, 31, 16, 0, 30, 500) },
    { text: "90s", ms: nowMs + 90_000 },
    { text: "30d", ms: nowMs + 30 * 86_400_000 },
  ])("time option accepts $text", ({ text, ms }) => expect(parseInstant("at", text, ahead)).toBe(ms));

  test("time option accepts a duration as a time before now", () => {
    expect(parseInstant("since", "24h", { nowMs, spans: "back" })).toBe(nowMs - 86_400_000);
  });

  test.each([
    "",
    "soon",
    "2026-02-29",
    "2026-13-01",
    "2026-12-31T25:00Z",
    "2026-12-31T18:00",
    "1795261700084",
    "9999d9",
    "2101-01-01",
    "999999d",
    "1969-12-31",
  ])("time option rejects %j", (text) => {
    expect(() => parseInstant("at", text, { ...ahead, or: "never" })).toThrow(
      /for --at: must be a time such as .*, or never$/,
    );
  });
});

test.each(["", "  ", "x".repeat(256), "a\u0000b", "a\nb", "\ud800"])("name option rejects %j", (text) => {
  expect(() => parseName("name", text, { lengthMax: 255 })).toThrow("for --name: must be 1 to 255 characters");
});

test("switch option accepts only on and off", () => {
  expect([parseSwitch("s", "on"), parseSwitch("s", "off")]).toEqual([true, false]);
  expect(() => parseSwitch("s", "true")).toThrow('invalid value "true" for --s: must be on or off');
});

test("duration option is converted to milliseconds and has a minimum", () => {
  expect(parseDurationOption("resync", "1m30s", { minMs: 1_000 })).toBe(90_000);
  expect(parseDurationOption("resync", "1s", { minMs: 1_000 })).toBe(1_000);
});

test("timer duration has a maximum, because a longer timer would fire immediately", () => {
  const day = { minMs: 1_000, maxMs: 86_400_000 };
  expect(parseDurationOption("timeout", "1d", day)).toBe(86_400_000);
  for (const text of ["24h1ms", "2d", "30d", "999999d"])
    expect(() => parseDurationOption("timeout", text, day), text).toThrow("from 1s to 24h");
});

test.each(["", "999ms", "5", "-1s", "soon"])("duration option %j is rejected", (text) => {
  expect(() => parseDurationOption("resync-interval", text, { minMs: 1_000 })).toThrow(
    "for --resync-interval: must be a duration",
  );
});

test("option with a list of choices accepts only these choices", () => {
  expect(parseChoice("log-format", "text", ["json", "text"])).toBe("text");
  expect(() => parseChoice("log-format", "xml", ["json", "text"])).toThrow("for --log-format: must be json or text");
});

test.each([
  { text: "500ms", ms: 500 },
  { text: "1h30m", ms: 5_400_000 },
  { text: "30d", ms: 30 * 86_400_000 },
])("duration option $text is read as $ms ms", ({ text, ms }) => {
  expect(parseDurationOption("d", text, { minMs: 1 })).toBe(ms);
});

test.each(["0s", "30", "1d12h", "d", "-1d", "soon"])("duration option rejects %s", (text) => {
  expect(() => parseDurationOption("d", text, { minMs: 1 })).toThrow("for --d: must be a duration");
});

test("JSON option accepts an object, and an error does not repeat its text", () => {
  expect(parseJsonObject("meta", '{"a":[1]}')).toEqual({ a: [1] });
  for (const text of ['{"secret":', "null", "[1]", '"secret"', ""]) {
    const read = () => parseJsonObject("meta", text);
    expect(read).toThrow("invalid value for --meta: must be a JSON object");
    expect(read).not.toThrow("secret");
  }
});
