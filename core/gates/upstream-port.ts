const POD_HOSTS = new Set(["127.0.0.1", "[::1]", "localhost"]);

/** Returns the port of an upstream `http://host:port` in the gate's own pod; `undefined` for another host, and for an invalid URL. */
export function upstreamPortInPod(upstream: string | undefined): number | undefined {
  if (upstream === undefined || !URL.canParse(upstream)) return undefined;
  const { hostname, port, protocol } = new URL(upstream);
  if (!POD_HOSTS.has(hostname)) return undefined;
  return port === "" ? (protocol === "https:" ? 443 : 80) : Number(port);
}
