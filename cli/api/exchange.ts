import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { readRetryAfterMs } from "../../core/api/retry.ts";

/* Sends an HTTP request and reads the response, over a kept-alive connection. */

/** Maximum size of a response. A page of a list has up to 100 keys, each with up to 1 MiB of `meta`. */
const RESPONSE_BYTES_MAX = 128 * 1024 * 1024;

export interface Answered {
  readonly status: number;
  readonly contentType: string;
  readonly location: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly text: string;
}

/** Error for a call without a complete response. */
export class NoResponse extends Error {
  override readonly name = "NoAnswer";
  /** Network or TLS error code such as `ECONNREFUSED`, or `TIMEOUT` or `TOO_LARGE`. */
  readonly code: string;
  /** Whether the server may have received and executed the request. */
  readonly maybeDone: boolean;

  constructor(code: string, options: { maybeDone: boolean; cause?: unknown }) {
    super(code, { cause: options.cause });
    this.code = code;
    this.maybeDone = options.maybeDone;
  }
}

export interface Exchanges {
  /** Sends a POST request. Throws `NoResponse` if no complete response arrives. */
  post(
    path: string,
    of: { body: string; headers: Readonly<Record<string, string>>; timeoutMs: number },
  ): Promise<Answered>;
  close(): void;
}

/** Opens a connection to the server. `ca` is the CA bundle (PEM) for https; the default is the system's CAs. */
export function openExchanges({ url, ca }: { url: string; ca?: string | undefined }): Exchanges {
  const isTls = url.startsWith("https:");
  const agent = isTls
    ? new HttpsAgent({ keepAlive: true, ...(ca === undefined ? {} : { ca }) })
    : new HttpAgent({ keepAlive: true });

  return {
    async post(path, { body, headers, timeoutMs }) {
      const signal = AbortSignal.timeout(timeoutMs);
      let maybeDone = false;
      try {
        const response = await new Promise<IncomingMessage>((resolve, reject) => {
          const options = {
            method: "POST",
            agent,
            headers: { ...headers, "content-length": Buffer.byteLength(body) },
            signal,
          };
          const request = (isTls ? httpsRequest : httpRequest)(`${url}${path}`, options, resolve);
          request.on("error", reject);
          request.on("socket", (socket) => {
            const sent = (): void => {
              maybeDone = true;
            };
            if (request.reusedSocket) sent();
            else socket.once(isTls ? "secureConnect" : "connect", sent);
          });
          request.end(body);
        });
        return { ...headOf(response), text: await textOf(response) };
      } catch (error) {
        if (error instanceof NoResponse) throw error;
        throw new NoResponse(signal.aborted ? "TIMEOUT" : codeOf(error), { maybeDone, cause: error });
      }
    },
    close: () => agent.destroy(),
  };
}

function headOf({ statusCode = 0, headers }: IncomingMessage): Omit<Answered, "text"> {
  return {
    status: statusCode,
    contentType: headers["content-type"] ?? "",
    location: headers.location,
    retryAfterMs: readRetryAfterMs(headers["retry-after"]),
  };
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    if (bytes > RESPONSE_BYTES_MAX) throw new NoResponse("TOO_LARGE", { maybeDone: true });
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Node.js reports a connection failure of a host with several addresses as one error per address, wrapped in an error without a code. */
function codeOf(error: unknown): string {
  const one = error instanceof AggregateError ? error.errors[0] : error;
  return String((one as NodeJS.ErrnoException | undefined)?.code ?? "UNKNOWN");
}
