import { untilPasses } from "./gate-load.ts";
import { http2Load } from "./http2-load.ts";
import { compare } from "./measure.ts";
import { CONNECTIONS, contestant, type Section, toFigures } from "./section.ts";

/**
 * CPU of the sidecar per request with a verified key over HTTP/2, as streams of one connection, compared with HTTP/1.1 on as many connections. The app
 * speaks HTTP/1.1 both times.
 */
export const http2: Section = async (environment, options) => {
  const [key] = await environment.keys(1);
  const headers = { authorization: `Bearer ${key?.key}` };
  const sidecar = await environment.startSidecar(await environment.createPolicy("http2", []));
  try {
    await untilPasses(sidecar.url, headers);
    const url = `${sidecar.url}/orders/1`;
    const overHttp1 = contestant(options, () => ({ url, headers }))("HTTP/1.1", sidecar);
    const { durationMs } = options;
    const overHttp2 = {
      name: "HTTP/2",
      pids: [sidecar.pid],
      loads: [http2Load(url, headers, { streams: CONNECTIONS, durationMs })],
    };
    const results = await compare({
      contestants: [{ contestant: overHttp2, baseline: overHttp1 }],
      rounds: options.rounds,
      onRound: (round) => options.progress(`http2: round ${round} of ${options.rounds}`),
    });
    return toFigures(results, [3.5]);
  } finally {
    await sidecar.stop();
  }
};
