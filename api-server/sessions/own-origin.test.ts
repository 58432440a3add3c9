import { expect, test } from "vitest";
import { ownOrigins } from "./own-origin.ts";

const url = "https://postern.example.com";

test.each([
  { name: "this machine", host: "127.0.0.1:8080", origins: ["http://127.0.0.1:8080"] },
  { name: "this machine by its name, as browsers write it", host: "LocalHost:80", origins: ["http://localhost"] },
  { name: "this machine by IPv6", host: "[::1]:8080", origins: ["http://[::1]:8080"] },
  { name: "plain http elsewhere", host: "postern.example.com", origins: [] },
  { name: "another address of this machine", host: "127.0.0.2", origins: [] },
  { name: "no host", host: undefined, origins: [] },
  { name: "its own TLS", host: "postern.svc:8443", isTls: true, origins: ["https://postern.svc:8443"] },
  { name: "its own TLS on this machine", host: "localhost:8443", isTls: true, origins: ["https://localhost:8443"] },
  { name: "what is configured", host: "postern.example.com", url, origins: [url] },
  { name: "what is configured, behind a proxy that sends its own host", host: "api:80", url, origins: [url] },
  { name: "both, by a forwarded port", host: "127.0.0.1:9", url, origins: [url, "http://127.0.0.1:9"] },
  { name: "what is configured, with a path", host: "x", url: `${url}/dashboard`, origins: [url] },
  { name: "a host with a user", host: "a@evil.test", isTls: true, origins: [] },
  { name: "a host with a path", host: "evil.test/127.0.0.1", isTls: true, origins: [] },
  { name: "a host with a space", host: "127.0.0.1 evil", origins: [] },
  { name: "a port that is none", host: "127.0.0.1:99999", origins: [] },
])("accepted dashboard origins for $name are $origins", ({ host, isTls = false, url: configured, origins }) => {
  expect(ownOrigins(host, { url: configured, isTls })).toEqual(origins);
});
