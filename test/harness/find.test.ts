import { expect, test } from "vitest";
import { findBinary, findPart, MissingPart } from "./parts/find.ts";

const failing = (name: string, message: string) => ({
  name,
  attempt: async (): Promise<string | undefined> => {
    throw new Error(message);
  },
});
const absent = { name: "the PATH", attempt: async (): Promise<string | undefined> => undefined };
const present = { name: "Go build", attempt: async (): Promise<string | undefined> => "found" };

test("dependency finder uses the first method that succeeds", async () => {
  expect(await findPart("Redis", "install it", [absent, failing("container", "no engine"), present])).toBe("found");
});

test("dependency finder names all attempts and the installation in one line", async () => {
  const attempt = findPart("Redis", "install redis-server", [absent, failing("apt-get", "no network\nno luck")]);
  await expect(attempt).rejects.toThrow(MissingPart);
  await expect(attempt).rejects.toThrow(
    /^Redis is missing \(tried apt-get: no network \| no luck\): install redis-server$/,
  );
});

test("dependency finder stops at an environment address that does not respond", async () => {
  const attempt = findPart("Redis", "start it", [failing("TEST_REDIS_URL", "connection refused"), present]);
  await expect(attempt).rejects.toThrow("TEST_REDIS_URL: connection refused");
});

test("dependency finder finds a program by any name in PATH", async () => {
  expect(await findBinary(["no-such-program", "sh"], "/nowhere:/bin:/usr/bin")).toMatch(/\/sh$/);
  expect(await findBinary(["no-such-program"], "/bin")).toBeUndefined();
});
